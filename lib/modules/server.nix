# What all modules share: the options, and what comes of their values.
{ lib, pkgs }:

let
  inherit (lib) mkOption types;
  inherit (import ../mcp/clients.nix { inherit lib; }) agentFile configOf scopes;

  definition = import ../mcp/tmux { inherit pkgs; };

  settings = definition.options;
in
{
  inherit (definition) name;
  inherit definition;

  # The server's own options, such as `audit`, without the others.
  inherit settings;

  options = {
    inherit settings;
    enable = lib.mkEnableOption (
      "tmux-debug-mcp, which gives a debugging agent real terminals over tmux"
    );
    package = mkOption {
      type = types.package;
      default = definition.package;
      defaultText = lib.literalExpression "pkgs.tmux-debug-mcp, or the flake's own";
      description = "The package with the server and the command tmux-debug.";
    };
    scope = mkOption {
      type = types.enum scopes;
      default = lib.head scopes;
      description = ''
        Who has the tools: "subagent" for a subagent of Claude Code's, while the main session has
        none, or "main" for the main session.
      '';
    };
  };

  # What these values of the options make: the server's configuration for a client, and the text of
  # its subagent's file.
  made =
    { package, settings, ... }:
    let
      server = import ../mcp/tmux { inherit package pkgs; };
      config = configOf server settings;
    in
    {
      inherit config;
      agent = agentFile server.name (server.subagent // { inherit config; });
    };
}
