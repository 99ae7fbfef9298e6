{
  description = "An MCP server that gives a debugging agent real terminals, over tmux";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      inherit (nixpkgs) lib;
      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      eachSystem = f: lib.genAttrs systems (system: f nixpkgs.legacyPackages.${system});
      packageOf = pkgs: pkgs.callPackage ./lib/mcp/tmux/mcp-server.nix { };
    in
    {
      overlays.default = final: _: { tmux-debug-mcp = packageOf final; };

      packages = eachSystem (pkgs: rec {
        default = tmux-debug-mcp;
        tmux-debug-mcp = packageOf pkgs;
        sandbox = (self.lib.mkLib pkgs).mkSandbox {
          mcp.tmux-debug.audit = "/workspace/.debug-audit.log";
        };
      });

      /**
        The library for a package set of yours; `legacyPackages.<system>.lib` is that for this
        flake's own nixpkgs.

        # Type

        ```
        mkLib :: Packages -> {
          mcpConfig :: { ... } -> { ... },
          mcpServers :: { ... },
          mkSandbox :: { ... } -> Derivation,
          profiles :: { ... },
          protectDefault :: [String]
        }
        ```

        # Examples

        ```nix
        mkLib nixpkgs.legacyPackages.x86_64-linux
        => { mcpConfig = «lambda»; mcpServers = { ... }; mkSandbox = «lambda»; ... }
        mkLib "x86_64-linux"
        => error: mkLib: the argument is of type string, but it should be a package set, ...
        ```
      */
      lib.mkLib = pkgs: import ./lib { inherit pkgs; };
      legacyPackages = eachSystem (pkgs: { lib = self.lib.mkLib pkgs; });

      templates.default.path = ./lib/template;
      templates.default.description = "A project's shell, and a sandbox for agents that has it";

      homeModules.default = ./lib/modules/home.nix;
      flakeModules.default = ./lib/modules/flake-parts.nix;
      devenvModules.default = ./lib/modules/devenv.nix;
      mcpServersModules.default = ./lib/modules/mcp-servers.nix;

      apps = eachSystem (pkgs: {
        default = {
          type = "app";
          program = lib.getExe (packageOf pkgs);
          meta.description = "The server, on standard input and output";
        };
        e2e = {
          type = "app";
          program = lib.getExe (import ./tests/nix/e2e.nix { inherit pkgs self; });
          meta.description = "The end-to-end tests, with podman";
        };
      });

      checks = eachSystem (pkgs: import ./tests/nix { inherit pkgs self; });

      formatter = lib.filterAttrs (_: package: package != null) (
        eachSystem (pkgs: pkgs.nixfmt-tree or null)
      );

      devShells = eachSystem (pkgs: {
        default = import ./tests/nix/shell.nix {
          inherit pkgs;
          package = packageOf pkgs;
        };
      });
    };
}
