# nixpkgs' own package sets, by systems.
{
  nixpkgs,
  overlays ? [ ],
  config ? { },
}:

let
  lib = import (nixpkgs + "/lib");

  # Some copies leave out the largest files, and with them ShellCheck, which is written in Haskell.
  hasHaskell = lib.pathExists (nixpkgs + "/pkgs/development/haskell-modules/hackage-packages.nix");
  withoutHaskell = final: _: {
    shellcheck = final.bash;
    shellcheck-minimal = final.bash // {
      compiler.bootstrapAvailable = false;
    };
  };
in
lib.genAttrs
  [
    "x86_64-linux"
    "aarch64-linux"
  ]
  (
    system:
    import nixpkgs {
      inherit system;
      config = {
        allowUnfreePredicate = package: lib.getName package == "claude-code";
      }
      // config;
      overlays = lib.optional (!hasHaskell) withoutHaskell ++ overlays;
    }
  )
