# A project whose developers have its packages in `nix develop`, and whose agents have the same
# packages in a sandbox: `nix develop .#sandbox`, then `project-sandbox`.
{
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";
  inputs.tmux-debug-mcp.url = "git+file:///path/to/tmux-debug-mcp"; # where you have it

  outputs =
    {
      self,
      nixpkgs,
      tmux-debug-mcp,
    }:
    let
      system = "x86_64-linux";
      pkgs = import nixpkgs {
        inherit system;
        config.allowUnfree = true; # for Claude Code
      };
      inherit (tmux-debug-mcp.lib.mkLib pkgs) mkSandbox;
    in
    {
      devShells.${system} = {
        default = pkgs.mkShell {
          packages = [
            pkgs.gnumake
          ];
        };

        sandbox = mkSandbox {
          name = "project-sandbox";
          inputsFrom = [ self.devShells.${system}.default ];
          agent = pkgs.claude-code;
          mcp.tmux-debug.audit = "/workspace/.debug-audit.log";
          ports = [ 8080 ];
        };
      };
    };
}
