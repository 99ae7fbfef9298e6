# A registry of wrapix's shape that has our server, and what wrapix's mkSandbox does with a registry.
{ pkgs, tmux-debug-mcp }:

let
  inherit (pkgs) lib;
  registry = {
    tmux-debug = (tmux-debug-mcp.lib.mkLib pkgs).mcpServers.tmux-debug;
  };
  lookUp = name: registry.${name} or (throw "Unknown MCP server: ${name}");
in
{
  sandbox = mcp: {
    packages = lib.concatMap (name: (lookUp name).packages) (lib.attrNames mcp);
    mcpServers = lib.mapAttrs (name: options: (lookUp name).mkServerConfig options) mcp;
  };
}
