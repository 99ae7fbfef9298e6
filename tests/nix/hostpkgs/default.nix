# The package set: a fixed point as nixpkgs' is, with what tmux-debug-mcp uses of it.
{
  system,
  overlays ? [ ],
}:
let
  lib = import ./lib.nix;
  host = import ./host.nix { inherit lib system; };
  inherit (host) fromHost tools;
  inherit (import ./stdenv.nix { inherit lib system tools; }) mkDerivation;

  packages =
    final:
    {
      inherit lib;
      callPackage = lib.callPackageWith final;
      extend =
        overlay:
        import ./. {
          inherit system;
          overlays = overlays ++ [ overlay ];
        };
      stdenv = {
        inherit mkDerivation;
        hostPlatform.system = system;
      };

      runCommand =
        name: attributes: script:
        mkDerivation ({ inherit name; } // attributes // { phases = script; });
      writeText =
        name: text:
        mkDerivation {
          inherit name text;
          passAsFile = "text";
          phases = ''cp "$textPath" "$out"'';
        };
      writeShellScriptBin =
        name: text:
        mkDerivation {
          inherit name;
          text = "#!${lib.getExe tools}\n${text}\n";
          passAsFile = "text";
          phases = ''install -D "$textPath" "$out/bin/$name"'';
        };
      mkShell =
        {
          packages ? [ ],
          inputsFrom ? [ ],
          ...
        }@attributes:
        mkDerivation (
          removeAttrs attributes [
            "packages"
            "inputsFrom"
          ]
          // {
            name = "nix-shell";
            nativeBuildInputs = packages ++ lib.concatMap (package: package.nativeBuildInputs) inputsFrom;
            propagatedBuildInputs = lib.concatMap (package: package.propagatedBuildInputs) inputsFrom;
            phases = ''export >"$out"'';
          }
        );

      python3 = import ./python { inherit host lib mkDerivation; };
      python3Packages = final.python3.pkgs;

      bash = tools;
      bashInteractive = tools;
      inherit (final.python3.pkgs) ruff;
    }
    //
      lib.genAttrs
        [
          "busybox"
          "dash"
          "fish"
          "shellcheck"
          "tmux"
          "util-linux"
          "zsh"
        ]
        (
          name:
          fromHost {
            inherit name;
            packages = [ name ];
          }
        );
in
lib.fix (lib.foldl' (f: overlay: lib.extends overlay f) packages overlays)
