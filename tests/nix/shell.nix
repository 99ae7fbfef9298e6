# A shell for work on the server, where the command, the tests and ./dev take its modules from the
# working tree.
{ pkgs, package }:
pkgs.mkShell {
  inputsFrom = [ package ];
  packages = [
    pkgs.python3.pkgs.mypy
    pkgs.python3.pkgs.types-jsonschema
    pkgs.ruff
    pkgs.shellcheck
    (pkgs.writeShellScriptBin "tmux-debug-mcp" ''exec python3 -m tmux_debug_mcp "$@"'')
  ]
  ++ import ./programs.nix { inherit pkgs; };
  shellHook = ''
    export PYTHONPATH=$PWD''${PYTHONPATH:+:$PYTHONPATH}
  '';
  # What ./dev would set up is here.
  DEV_IS_SET_UP = 1;
}
