# A shell for work on the server, where the command, the tests and ./dev take its modules from the
# working tree.
{ pkgs, package }:

let
  inherit (pkgs) lib;
in
pkgs.mkShell {
  inputsFrom = [ package ];
  packages = [
    pkgs.python3.pkgs.mypy
    pkgs.ruff
    pkgs.shellcheck
    (pkgs.writeShellScriptBin "tmux-debug-mcp" ''exec python3 -m tmux_debug_mcp "$@"'')
  ]
  # It came to nixpkgs in July 2026.
  ++ lib.optional (pkgs.python3.pkgs ? types-jsonschema) pkgs.python3.pkgs.types-jsonschema
  ++ import ./programs.nix { inherit pkgs; };
  shellHook = ''
    export PYTHONPATH=$PWD''${PYTHONPATH:+:$PYTHONPATH}
  '';
  # What ./dev would set up is here.
  DEV_IS_SET_UP = 1;
}
