/**
  The library for a package set: `lib.mkLib` of the flake, and `legacyPackages.<system>.lib` for its own nixpkgs.

  # Inputs

  `pkgs`: the package set

  # Type

  ```
  mkLib :: Packages -> { mcpServers :: { ... }, mcpConfig :: { ... } -> { ... } }
  ```

  # Examples

  ```nix
  mkLib nixpkgs.legacyPackages.x86_64-linux
  => { mcpConfig = <function>; mcpServers = { tmux-debug = { ... }; }; }
  mkLib "x86_64-linux"
  => error: mkLib: the argument is of type string, but it should be a package set, such as nixpkgs.legacyPackages.x86_64-linux.
  ```
*/
{ pkgs }:

if !(builtins.isAttrs pkgs && pkgs ? callPackage) then
  throw "mkLib: the argument is of type ${builtins.typeOf pkgs}, but it should be a package set, such as nixpkgs.legacyPackages.x86_64-linux."
else

let
  inherit (pkgs) lib;
  inherit (import ./arguments.nix { inherit lib; }) closedSetReason unlessReason;
in
rec {
  /**
    The MCP servers that there are, each with its definition for a registry; its `mkServerConfig` tells the options.

    # Type

    ```
    mcpServers :: {
      ${server} :: {
        name :: String,
        package :: Derivation,
        packages :: [Derivation],
        mkServerConfig :: { ${option} :: String | Null } -> { command :: String, env :: { ${variable} :: String } }
      }
    }
    ```
  */
  mcpServers = import ./mcp { inherit pkgs; };

  /**
    The configuration of a client that is to have these servers, such as Claude Code's `.mcp.json` is in JSON.

    # Inputs

    `servers`: the options of each server, by the server's name

    # Type

    ```
    mcpConfig :: { ${server} :: { ${option} :: String | Null } } -> {
      mcpServers :: {
        ${server} :: { type :: String, command :: String, args :: [String], env :: { ${variable} :: String } }
      }
    }
    ```

    # Examples

    ```nix
    builtins.toJSON (mcpConfig { tmux-debug = { }; })
    => ''{"mcpServers":{"tmux-debug":{"args":[],"command":"/nix/store/.../bin/tmux-debug-mcp","env":{},"type":"stdio"}}}''
    mcpConfig { tmux-debgu = { }; }
    => error: mcpConfig: Unknown MCP server: tmux-debgu. Known: tmux-debug.
    ```
  */
  mcpConfig =
    servers:
    let
      reason = closedSetReason {
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
    unlessReason reason { mcpServers = lib.mapAttrs entry servers; };
}
