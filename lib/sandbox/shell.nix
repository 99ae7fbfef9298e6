# The environment that these development shells have in common, as `nix develop` has it but for the
# hook: a package with a file for the entrypoint.
{ pkgs, shells }:

let
  inherit (pkgs) lib;

  # One with a compiler, if any of the shells has it.
  stdenvs = lib.filter (stdenv: stdenv ? mkDerivation) (lib.catAttrs "stdenv" shells);
  stdenv = lib.findFirst (stdenv: stdenv.hasCC or true) (lib.head (stdenvs ++ [ pkgs.stdenv ])) stdenvs;

  # What each derivation has, and variables of the build itself.
  ofBuild =
    lib.attrNames (pkgs.mkShell { }).drvAttrs
    ++ [
      "HOME"
      "NIX_BUILD_CORES"
      "NIX_BUILD_TOP"
      "NIX_ENFORCE_PURITY"
      "NIX_LOG_FD"
      "NIX_MAIN_PROGRAM"
      "NIX_SSL_CERT_FILE"
      "OLDPWD"
      "PWD"
      "SHLVL"
      "src"
      "SSL_CERT_FILE"
      "TEMP"
      "TEMPDIR"
      "TERM"
      "TMP"
      "TMPDIR"
      "TZ"
      "out"
    ];
  variablesOf =
    shell:
    if shell.drvAttrs.__structuredAttrs or false then shell.drvAttrs.env or { } else shell.drvAttrs;
  # Of several shells, the first one's.
  variables = lib.foldl' (all: shell: removeAttrs (variablesOf shell) ofBuild // all) { } shells;
in
(pkgs.mkShell.override { inherit stdenv; }) (
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
