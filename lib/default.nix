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
  inherit (import ./mcp/clients.nix { inherit lib; }) configOf;
  inherit (import ./options.nix { inherit lib; }) checked setOf;
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
        options :: { ${option} :: Option },
        package :: Derivation,
        packages :: [Derivation],
        subagent :: {
          description :: { ... } -> String,
          env :: { ${variable} :: String },
          prompt :: { ... } -> String,
          tools :: [String]
        },
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
    mcpConfig :: { ${server} :: { ${option} :: String | Bool | Null } } -> {
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
    => error: The option `tmux-debgu' does not exist. Definition values:
       - In `mcpConfig': { }
    ```
  */
  mcpConfig =
    servers:
    let
      options = lib.mapAttrs (
        name: server:
        lib.mkOption {
          type = lib.types.nullOr (setOf "options, such as { keep = \"1h\"; }" server.options);
          default = null;
          description = "The options of the server ${name}; null for no such server.";
        }
      ) mcpServers;
      given = lib.filterAttrs (_: options: options != null) (checked "mcpConfig" options servers);
    in
    {
      mcpServers = lib.mapAttrs (name: configOf mcpServers.${name}) given;
    };

  inherit
    (import ./sandbox {
      inherit mcpConfig mcpServers;
      pkgs = packages;
    })
    mkSandbox
    profiles
    protectDefault
    sandboxOptions
    ;
}
