{
  description = "The modules in what they are made for, with the configurations beside this file";

  inputs = {
    nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";
    tmux-debug-mcp.url = "git+file:///path/to/tmux-debug-mcp";
    tmux-debug-mcp.inputs.nixpkgs.follows = "nixpkgs";

    home-manager.url = "github:nix-community/home-manager";
    home-manager.flake = false;
    mcp-servers-nix.url = "github:natsukium/mcp-servers-nix";
    mcp-servers-nix.inputs.nixpkgs.follows = "nixpkgs";
  };

  outputs =
    inputs:
    let
      inherit (inputs) mcp-servers-nix tmux-debug-mcp;
      pkgs = inputs.nixpkgs.legacyPackages.x86_64-linux;
      inherit (tmux-debug-mcp.lib.mkLib pkgs) mcpConfig mcpServers;
    in
    {
      # What the configurations make.
      home-manager = import ./home-manager.nix { inherit inputs pkgs; } ./configuration.nix;
      devenv = import ./devenv.nix { inherit inputs pkgs; } ./configuration.nix;
      mcp-servers-nix = import ./configuration.nix { inherit mcp-servers-nix pkgs tmux-debug-mcp; };

      # What it should be, with the options in options.json.
      expected = rec {
        config = mcpConfig { tmux-debug = pkgs.lib.importJSON ./options.json; };
        agent =
          (import "${tmux-debug-mcp}/lib/sandbox/home.nix" {
            inherit (pkgs) lib;
            enabledPlugins = { };
            servers = { };
            subagents.tmux-debug = mcpServers.tmux-debug.subagent // {
              config = config.mcpServers.tmux-debug;
            };
          })."etc/skel/.claude/agents/tmux-debug.md";
      };
    };
}
