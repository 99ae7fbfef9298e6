# For home-manager: the server in `programs.mcp`, where clients take it from, or in a subagent of
# `programs.claude-code`.
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
      { home.packages = [ cfg.package ]; }
      (lib.mkIf (cfg.scope == "main") {
        programs.mcp = {
          enable = lib.mkDefault true;
          # Each client's module tells the type by `command`.
          servers.${server.name} = removeAttrs made.config [ "type" ];
        };
      })
      (lib.mkIf (cfg.scope == "subagent") {
        programs.claude-code.agents.${server.name} = made.agent;
        assertions = [
          {
            assertion = config.programs.claude-code.enable;
            message =
              ''`programs.tmux-debug-mcp.scope` is "subagent", which is for Claude Code.''
              + " Set `programs.claude-code.enable`,"
              + '' or the scope "main" for the clients of `programs.mcp`.'';
          }
        ];
      })
    ]
  );
}
