# For mcp-servers-nix: `programs.tmux-debug`, with all that each of its servers has, and `settings`.
{
  config,
  lib,
  mkServerModule,
  pkgs,
  ...
}:

let
  server = import ./server.nix { inherit lib pkgs; };
in
{
  imports = [
    (mkServerModule {
      inherit (server) name;
      packageName = "tmux-debug-mcp";
    })
  ];

  options.programs.tmux-debug.settings = server.settings;

  config.programs.tmux-debug = {
    package = lib.mkDefault server.definition.package;
    inherit ((server.made config.programs.tmux-debug).config) env;
  };
}
