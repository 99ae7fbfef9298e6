# For devenv: the server in `claude.code.mcpServers`, or in a subagent of the project's.
{
  config,
  lib,
  pkgs,
  ...
}:

let
  cfg = config.programs.tmux-debug-mcp;
  server = import ./server.nix { inherit lib pkgs; };
  made = server.made cfg;
in
{
  options.programs.tmux-debug-mcp = server.options;

  config = lib.mkIf cfg.enable (
    lib.mkMerge [
      { packages = [ cfg.package ]; }
      (lib.mkIf (cfg.scope == "main") {
        claude.code = {
          enable = lib.mkDefault true;
          mcpServers.${server.name} = made.config;
        };
      })
      # The subagents of `claude.code.agents` have no servers of their own.
      (lib.mkIf (cfg.scope == "subagent") {
        files.".claude/agents/${server.name}.md".text = made.agent;
      })
    ]
  );
}
