# The flake's checks.
{ pkgs, self }:

let
  inherit (pkgs) lib;
  inherit (self.lib.mkLib pkgs) mcpServers;
  inherit (mcpServers.tmux-debug) package;

  # This package set, had it version 1 of the MCP SDK.
  before = pkgs.extend (
    _: prev: {
      python3 = prev.python3.override {
        packageOverrides = _: python: {
          mcp = python.mcp // {
            version = "1.30.0";
          };
          httpx2 = python.httpx2 or { } // {
            version = "2.4.0";
          };
          # As old as that of nixpkgs then.
          idna = python.idna // {
            version = "3.13";
          };
        };
      };
    }
  );

  configured = mcpServers.tmux-debug.mkServerConfig {
    audit = "~/logs/audit.log";
    auditFull = "~/full";
    dropEnv = "DROPPED_*";
    logDir = "~/kept";
    toolsets = "debug, tabs";
    tmux = lib.getExe pkgs.tmux;
  };

  # Scripts of tests/ that drive the server that is installed.
  scripts =
    name: environment: commands:
    pkgs.runCommand "tmux-debug-mcp-${name}"
      (
        {
          nativeBuildInputs = [
            pkgs.bash
            pkgs.python3
            pkgs.tmux
          ];
          TMUX_MCP_SERVER = lib.getExe package;
        }
        // environment
      )
      ''
        export HOME=$TMPDIR
        cp -r ${../tmux-mcp} tmux-mcp
        cp -r ${./scripts} nix
        chmod -R u+w .
        patchShebangs .
        ${commands}
        touch $out
      '';
in
{
  evaluation = import ./evaluation.nix { inherit before pkgs self; };
  # Built with tests/unit.
  inherit package;
  package-where-mcp-is-1 = scripts "where-mcp-is-1" {
    TMUX_MCP_SERVER = lib.getExe (
      (self.lib.mkLib before).mcpServers.tmux-debug.package.overridePythonAttrs (_: { doCheck = false; })
    );
  } "tmux-mcp/run-integration.sh create_pane";
  # Manual pages and completions; nixpkgs compresses the pages.
  installed-data = pkgs.runCommand "tmux-debug-mcp-installed-data" { } ''
    cd ${../../data}
    for file in share/*/*/*; do
      if [[ ! -s ${package}/$file && ! -s ${package}/$file.gz ]]; then
        echo "$file is not installed" >&2
        exit 1
      fi
    done
    touch $out
  '';
  integration-scripts = scripts "integration-scripts" { } "tmux-mcp/run-integration.sh";
  environment = scripts "environment" { } "nix/test_environment.sh";
  configuration = scripts "configuration" { TMUX_MCP_SERVER = configured.command; } ''
    nix/test_configuration.sh ${
      lib.escapeShellArgs (lib.mapAttrsToList (name: value: "${name}=${value}") configured.env)
    }
  '';
}
