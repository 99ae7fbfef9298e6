# The derivations of this flake's outputs with a nixpkgs, by names; null for what that nixpkgs has not.
{
  nixpkgs,
  # That of the package sets.
  config ? { },
}:

let
  self = import ./nixpkgs.nix {
    inherit nixpkgs;
    legacyPackages = import ./package-sets.nix { inherit config nixpkgs; };
  };
  system = "x86_64-linux";
  pkgs = self.nixpkgs.${system};
  inherit (pkgs) lib;
  inherit (self.lib.mkLib pkgs) mkSandbox profiles;
  paths = prefix: lib.mapAttrs' (name: value: lib.nameValuePair "${prefix} ${name}" value.drvPath);
in
lib.concatMapAttrs (
  system: packages:
  paths "package for ${system}" (packages // { image = packages.sandbox.image; })
) self.packages
// paths "check" self.checks.${system}
// paths "sandbox with profile" (lib.mapAttrs (_: profile: mkSandbox { inherit profile; }) profiles)
// {
  "development shell" = self.devShells.${system}.default.drvPath;
  "package of the overlay" = (pkgs.extend self.overlays.default).tmux-debug-mcp.drvPath;
  "end-to-end tests" = self.apps.${system}.e2e.program;
  "demo as a test of the package" = self.packages.${system}.default.tests.demo.drvPath;
  "sandbox with a closed network" =
    (mkSandbox {
      allowedHosts = [ "api.example.com" ];
      secrets = [
        {
          host = "keyed.example.com";
          variable = "KEY";
          header = "x-api-key";
          urlVariable = "URL";
        }
      ];
    }).drvPath;
  "sandbox with an agent" = if pkgs ? claude-code then (mkSandbox { agent = pkgs.claude-code; }).drvPath else null;
}
