# The library for a package set: what the flake's `lib.mkLib` returns.
{ pkgs }:

let
  packageSet = "but it should be a package set, such as nixpkgs.legacyPackages.x86_64-linux.";
  packages =
    if !builtins.isAttrs pkgs then
      throw "mkLib: the argument is of type ${builtins.typeOf pkgs}, ${packageSet}"
    else if !(pkgs ? callPackage && pkgs ? lib) then
      throw "mkLib: the argument is a set without `callPackage` and `lib`, ${packageSet}"
    else
      pkgs;
  inherit (packages) lib;
  inherit (import ./arguments.nix { inherit lib; }) anything checked closedSet;
  inherit (import ./mcp/clients.nix { inherit lib; }) configOf;
in
builtins.seq packages rec {
  /**
    The MCP servers that there are, each with its definition for a registry; its `mkServerConfig`
    tells the options.

    # Type

    ```
    mcpServers :: {
      ${server} :: {
        name :: String,
        options :: [String],
        package :: Derivation,
        packages :: [Derivation],
        subagent :: { description :: String, prompt :: String, tools :: [String] },
        mkServerConfig ::
          { ${option} :: String | Null } -> { command :: String, env :: { ${variable} :: String } }
      }
    }
    ```
  */
  mcpServers = import ./mcp { pkgs = packages; };

  /**
    The configuration of a client that is to have these servers, such as Claude Code's `.mcp.json`
    has it in JSON.

    # Inputs

    `servers`
    : the options of each server, by the server's name

    # Type

    ```
    mcpConfig :: { ${server} :: { ${option} :: String | Null } } -> {
      mcpServers :: {
        ${server} :: {
          type :: String,
          command :: String,
          args :: [String],
          env :: { ${variable} :: String }
        }
      }
    }
    ```

    # Examples

    ```nix
    (mcpConfig { tmux-debug = { }; }).mcpServers.tmux-debug
    => { args = [ ]; command = "/nix/store/.../bin/tmux-debug-mcp"; env = { }; type = "stdio"; }
    mcpConfig { tmux-debgu = { }; }
    => error: mcpConfig: Unknown MCP server: tmux-debgu. Known: tmux-debug.
    ```
  */
  mcpConfig =
    servers:
    let
      check = closedSet {
        kind = "MCP server";
        checks = lib.mapAttrs (_: _: anything) mcpServers; # mkServerConfig checks its options
      };
    in
    {
      mcpServers = lib.mapAttrs (name: configOf mcpServers.${name}) (checked "mcpConfig" check servers);
    };

  inherit
    (import ./sandbox {
      inherit mcpConfig mcpServers;
      pkgs = packages;
    })
    mkSandbox
    profiles
    protectDefault
    ;
}
