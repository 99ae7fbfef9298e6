# The files of a home directory that home-manager's own modules make of a configuration.
#
# `homeManagerConfiguration` wants all of nixpkgs. Here are the modules that have to do with ours, and
# in place of the others the options that these set.
{ inputs, pkgs }:
configuration:

let
  home-manager = "${inputs.home-manager}/modules";
  lib = import "${home-manager}/lib/stdlib-extended.nix" pkgs.lib;
  inherit (lib) mkOption types;

  homeDirectory = "/home/alice";
  inherit (import "${home-manager}/lib/file-type.nix" { inherit homeDirectory lib pkgs; }) fileType;
  filesIn =
    directory:
    mkOption {
      type = fileType "" "" directory;
      default = { };
    };
  ignored = mkOption {
    type = types.raw;
    default = null;
  };

  others =
    { config, ... }:
    {
      options = {
        assertions = mkOption { type = types.listOf types.raw; };
        warnings = mkOption {
          type = types.listOf types.str;
          default = [ ];
        };
        home = {
          activation = ignored;
          file = filesIn homeDirectory;
          homeDirectory = mkOption { type = types.path; };
          packages = mkOption { type = types.listOf types.package; };
          preferXdgDirectories = lib.mkEnableOption "";
          sessionVariables = mkOption { type = types.attrsOf types.str; };
        };
        launchd = ignored;
        lib = ignored;
        meta.maintainers = mkOption { type = types.listOf types.raw; };
        systemd = ignored;
        xdg.configFile = filesIn "${homeDirectory}/.config";
        xdg.configHome = mkOption { type = types.path; };
      };

      config = {
        home = { inherit homeDirectory; };
        home.file = lib.mapAttrs' (
          name: file: lib.nameValuePair file.target { inherit (file) source text; }
        ) config.xdg.configFile;
        xdg.configHome = "${homeDirectory}/.config";
      };
    };

  inherit
    (lib.evalModules {
      specialArgs = { inherit inputs pkgs; };
      modules = [
        configuration
        others
        "${home-manager}/programs/claude-code"
        "${home-manager}/programs/codex"
        "${home-manager}/programs/mcp.nix"
        "${home-manager}/programs/opencode.nix"
      ];
    })
    config
    ;

  failed = lib.filter (assertion: !assertion.assertion) config.assertions;
in
lib.throwIf (failed != [ ]) (lib.concatMapStringsSep "\n" (assertion: assertion.message) failed) {
  inherit (config) warnings;
  inherit (config.home) packages;
  files = lib.mapAttrs' (
    _: file: lib.nameValuePair file.target (if file.text == null then file.source else file.text)
  ) config.home.file;
}
