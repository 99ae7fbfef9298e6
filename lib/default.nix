# The library for a package set: what the flake's `lib.mkLib` returns.
{ pkgs }:

let
  packageSet = "but it should be a package set, such as nixpkgs.legacyPackages.x86_64-linux.";
  checked =
    if !builtins.isAttrs pkgs then
      throw "mkLib: the argument is of type ${builtins.typeOf pkgs}, ${packageSet}"
    else if !(pkgs ? callPackage && pkgs ? lib) then
      throw "mkLib: the argument is a set without `callPackage` and `lib`, ${packageSet}"
    else
      pkgs;
  inherit (checked) lib;
  inherit (import ./arguments.nix { inherit lib; }) closedSetReason;
in
builtins.seq checked rec {
  /**
    The MCP servers that there are, each with its definition for a registry; its `mkServerConfig`
    tells the options.

    # Type

    ```
    mcpServers :: {
      ${server} :: {
        name :: String,
        package :: Derivation,
        packages :: [Derivation],
        mkServerConfig ::
          { ${option} :: String | Null } -> { command :: String, env :: { ${variable} :: String } }
      }
    }
    ```
  */
  mcpServers = import ./mcp { pkgs = checked; };

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
    lib.throwIf (reason != null) reason { mcpServers = lib.mapAttrs entry servers; };
}
