# The files of a project that devenv makes of a configuration.
#
# A stand-in for devenv, whose own modules are not here: its options `packages`, `files` and
# `claude.code`, named and typed as devenv's documentation has them.
{ inputs, pkgs }:
configuration:

let
  inherit (pkgs) lib;
  inherit (lib) mkOption types;

  devenv =
    { config, ... }:
    {
      options = {
        packages = mkOption { type = types.listOf types.package; };
        files = mkOption {
          type = types.attrsOf (
            types.submodule {
              options.text = mkOption { type = types.lines; };
            }
          );
          default = { };
        };
        claude.code.enable = lib.mkEnableOption "Claude Code";
        claude.code.mcpServers = mkOption {
          type = types.attrsOf (
            types.submodule {
              options = {
                type = mkOption {
                  type = types.enum [
                    "stdio"
                    "http"
                  ];
                };
                command = mkOption {
                  type = types.nullOr types.str;
                  default = null;
                };
                args = mkOption {
                  type = types.listOf types.str;
                  default = [ ];
                };
                env = mkOption {
                  type = types.attrsOf types.str;
                  default = { };
                };
                url = mkOption {
                  type = types.nullOr types.str;
                  default = null;
                };
              };
            }
          );
          default = { };
        };
      };

      config.files = lib.mkIf (config.claude.code.enable && config.claude.code.mcpServers != { }) {
        ".mcp.json".text = builtins.toJSON {
          mcpServers = lib.mapAttrs (
            _: lib.filterAttrs (_: value: value != null && value != [ ] && value != { })
          ) config.claude.code.mcpServers;
        };
      };
    };

  inherit
    (lib.evalModules {
      specialArgs = { inherit inputs pkgs; };
      modules = [
        configuration
        devenv
      ];
    })
    config
    ;
in
{
  inherit (config) packages;
  files = lib.mapAttrs (_: file: file.text) config.files;
}
