# A registry like wrapix's that has our server, and what wrapix does with a registry.
{ pkgs }:

let
  inherit (pkgs) lib;

  registry =
    { pkgs }:
    {
      tmux-debug = pkgs.tmux-debug-mcp.mcpServer { inherit pkgs; };
    };
  servers = registry { inherit pkgs; };
  lookUp = name: servers.${name} or (throw "Unknown MCP server: ${name}");
in
{
  # mkSandbox { mcp = { NAME = OPTIONS; }; }
  sandbox = mcp: {
    packages = lib.concatMap (name: (lookUp name).packages) (lib.attrNames mcp);
    mcpServers = lib.mapAttrs (name: options: (lookUp name).mkServerConfig options) mcp;
  };

  # mkSandbox { mcpRuntime = true; }
  runtimeServers = lib.mapAttrs (_: server: server.mkServerConfig { }) servers;
}
