# This flake's outputs with a nixpkgs that lies in a directory, which is not copied for that.
{
  nixpkgs,
  # By systems.
  legacyPackages ? import ./package-sets.nix { inherit nixpkgs; },
}:

let
  lib = import (nixpkgs + "/lib");

  self =
    (import ../../../flake.nix).outputs {
      inherit self;
      nixpkgs = {
        inherit legacyPackages lib;
      };
    }
    // {
      outPath = ../../..;
      nixpkgs = legacyPackages;
    };
in
self
