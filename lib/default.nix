# What the flake offers for a package set: legacyPackages.<system>.lib, and lib.mkLib for a package set of yours.
{ pkgs }:

if !(builtins.isAttrs pkgs && pkgs ? callPackage) then
  throw "mkLib: the argument is of type ${builtins.typeOf pkgs}, but it should be a package set, such as nixpkgs.legacyPackages.x86_64-linux."
else

let
  inherit (pkgs) lib;
  arguments = import ./arguments.nix { inherit lib; };
in
rec {
  /**
    The known MCP servers, by name: `{ name, package, packages, mkServerConfig }` each.

    # Type

    ```
    mcpServers :: { ${name} :: { name :: String, package :: Derivation, packages :: [Derivation], mkServerConfig :: Options -> { command :: String, env :: { ${variable} :: String } } } }
    ```
  */
  mcpServers = import ./mcp { inherit pkgs; };

  /**
    The configuration of a client, such as Claude Code's `.mcp.json`, that has these servers.

    # Inputs

    `servers`: options of each server, by its name; see the server's `mkServerConfig`

    # Type

    ```
    mcpConfig :: { ${name} :: Options } -> { mcpServers :: { ${name} :: { type :: String, command :: String, args :: [String], env :: { ${variable} :: String } } } }
    ```

    # Examples

    ```nix
    builtins.toJSON (mcpConfig { tmux-debug = { }; })
    => ''{"mcpServers":{"tmux-debug":{"args":[],"command":"/nix/store/…/bin/tmux-debug-mcp","env":{},"type":"stdio"}}}''
    mcpConfig { tmux-debgu = { }; }
    => error: mcpConfig: Unknown MCP server: tmux-debgu. Known: tmux-debug.
    ```
  */
  mcpConfig =
    servers:
    let
      reason = arguments.closedSetReason {
        function = "mcpConfig";
        kind = "MCP server";
        known = lib.attrNames mcpServers;
      } servers;
      entry =
        name: options:
        {
          type = "stdio";
          args = [ ];
        }
        // mcpServers.${name}.mkServerConfig options;
    in
    arguments.unlessReason reason { mcpServers = lib.mapAttrs entry servers; };
}
