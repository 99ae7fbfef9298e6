# The environment that these development shells have in common, as `nix develop` has it but for the
# hook: a package with a file for the entrypoint.
{ pkgs, shells }:

let
  inherit (pkgs) lib;
  first = lib.head shells;

  # What each derivation has, and variables of the build itself.
  ofBuild =
    lib.attrNames (pkgs.mkShell { }).drvAttrs
    ++ [
      "HOME"
      "NIX_BUILD_CORES"
      "NIX_BUILD_TOP"
      "NIX_ENFORCE_PURITY"
      "NIX_LOG_FD"
      "NIX_SSL_CERT_FILE"
      "OLDPWD"
      "PWD"
      "SHLVL"
      "SSL_CERT_FILE"
      "TEMP"
      "TEMPDIR"
      "TERM"
      "TMP"
      "TMPDIR"
      "TZ"
      "out"
    ];
  variables = lib.foldl' (all: shell: removeAttrs shell.drvAttrs ofBuild // all) { } shells;
in
(pkgs.mkShell.override { stdenv = first.stdenv or pkgs.stdenv; }) (
  variables
  // {
    name = "sandbox-environment";
    inputsFrom = shells;
    buildPhase = ''
      mkdir $out
      file=$out/shell-environment
      unset ${lib.concatStringsSep " " ofBuild}
      env -0 >$file
    '';
  }
)
