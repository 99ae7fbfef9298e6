# nixpkgs' own functions over the programs of a Debian host, without a bootstrap, as far as our package and a sandbox need
# them: buildPythonApplication with all its hooks, buildEnv, images, shell applications. What nixpkgs builds from source is
# the host's, or a wheel.
{ nixpkgs }:

let
  lib = import (nixpkgs + "/lib");
  host = import ../hostpkgs/host.nix {
    inherit lib;
    system = "x86_64-linux";
  };
  inherit (host) wheels;

  # What nixpkgs has and the stand-in has not; idna is as old as in the releases of nixpkgs.
  more = {
    build = {
      version = "1.6.1";
      url = "https://files.pythonhosted.org/packages/ad/9b/9fb3585dabcd73a1b2a6267f63f62649347c9e6d072c9fde365b105abb2c/build-1.6.1-py3-none-any.whl";
      sha256 = "ecd351a4be9d35a9eaaba244a7687143c9c7d4aea6ac964e7e7ddab20cbcf4e7";
      dependencies = [
        "packaging"
        "pyproject-hooks"
      ];
    };
    pyproject-hooks = {
      version = "1.3.3";
      url = "https://files.pythonhosted.org/packages/85/11/044d1ae1b4ec0d7af88ee5bc91e081be1022533032b906a7bdabdbb60977/pyproject_hooks-1.3.3-py3-none-any.whl";
      sha256 = "5fc53fdac9f7bd63fbcdc868fb5f90b4784d78a53a3d3388cd738b807441a20b";
      dependencies = [ ];
    };
    wheel = {
      version = "0.45.1";
      url = "https://files.pythonhosted.org/packages/0b/2c/87f3254fd8ffd29e4c02732eee68a83a1d3c346ae39bc6822dcbcb697f2b/wheel-0.45.1-py3-none-any.whl";
      sha256 = "708e7481cc80179af0e556bbf0cc00b8444c7321e2700b8d8580231d13017248";
      dependencies = [ ];
    };
    idna = {
      version = "3.13";
      url = "https://files.pythonhosted.org/packages/5d/13/ad7d7ca3808a898b4612b6fe93cde56b53f3034dcde235acb1f0e1df24c6/idna-3.13-py3-none-any.whl";
      sha256 = "892ea0cde124a99ce773decba204c5552b69c3c67ffd5f232eb7696135bc8bb3";
      dependencies = [ ];
    };
  };

  # The host's Python, as a virtual environment of it, which has a setup hook and packages as nixpkgs' has.
  python3 =
    pkgs:
    let
      version = "3.11";
      sitePackages = "lib/python${version}/site-packages";
      setupHook = pkgs.callPackage (nixpkgs + "/pkgs/development/interpreters/python/setup-hook.nix") { } sitePackages;
      passthruFun = pkgs.callPackage (nixpkgs + "/pkgs/development/interpreters/python/passthrufun.nix") { };
      make =
        {
          packageOverrides ? (_: _: { }),
          self ? null,
        }:
        let
          here = if self == null then python else self;
          python = pkgs.stdenv.mkDerivation {
            pname = "python3";
            version = "${version}.2";
            buildCommand = ''
              mkdir -p $out/bin $out/nix-support $out/${sitePackages}
              cp ${setupHook} $out/nix-support/setup-hook
              ln -s ${host.python3}/bin/* $out/bin
              echo "home = ${host.python3}/bin" >$out/pyvenv.cfg
            '';
            passthru = passthruFun {
              inherit packageOverrides;
              self = here;
              implementation = "cpython";
              libPrefix = "python${version}";
              executable = "python${version}";
              inherit sitePackages;
              pythonVersion = version;
              sourceVersion = {
                major = "3";
                minor = "11";
                patch = "2";
                suffix = "";
              };
              hasDistutilsCxxPatch = false;
              pythonAttr = "python3";
              pythonOnBuildForBuild = here;
              pythonOnBuildForHost = here;
              pythonOnBuildForTarget = here;
              pythonOnHostForHost = here;
              pythonOnTargetForTarget = here;
            };
            meta = {
              mainProgram = "python3";
              platforms = lib.platforms.linux;
            };
          };
        in
        python;
    in
    lib.makeOverridable make {
      packageOverrides = fromWheels pkgs;
    };

  fetch = pkgs: wheel: pkgs.fetchurl { inherit (wheel) url sha256; };

  # What is installed without the hooks that need it themselves.
  unpacked =
    pkgs: python: pname: wheel:
    pkgs.runCommand "${pname}-${wheel.version}" {
      inherit pname;
      inherit (wheel) version;
      passthru.pythonModule = python;
    } ''
      mkdir -p $out/${python.sitePackages}
      cd $out/${python.sitePackages}
      /usr/bin/python3 -m zipfile -e ${fetch pkgs wheel} .
      ${lib.optionalString (pname == "installer") "sed '/^diff .*tests/,$d' ${nixpkgs + "/pkgs/development/python-modules/installer/cross.patch"} | patch -p2"}
    '';

  fromWheels =
    pkgs: final: _:
    let
      packages = removeAttrs wheels.packages [
        "httpcore2"
        "httpx2"
        "mcp"
        "mcp-types"
      ] // more;
      plain = lib.genAttrs [ "installer" "packaging" "build" "pyproject-hooks" "wheel" "flit-core" ] (
        name: unpacked pkgs final.python name (wheels.tools.${name} or packages.${name})
      );
    in
    lib.mapAttrs (
      pname: wheel:
      final.buildPythonPackage {
        inherit pname;
        inherit (wheel) version;
        format = "wheel";
        src = fetch pkgs wheel;
        dependencies = map (name: final.${name}) wheel.dependencies;
        doCheck = false;
      }
    ) (removeAttrs packages (lib.attrNames plain))
    // plain
    // {
      bootstrap = plain // {
        recurseForDerivations = false;
      };
      flake8 = final.toPythonModule (pkgs.writeShellScriptBin "flake8" ":");
      build = pkgs.writeShellScriptBin "pyproject-build" ''
        PYTHONPATH=${lib.makeSearchPath final.python.sitePackages [ plain.build plain.packaging plain.pyproject-hooks ]}:$PYTHONPATH \
          exec ${final.python.interpreter} -m build "$@"
      '' // {
        pythonModule = final.python;
      };
    };

  native =
    final: prev:
    let
      from =
        name: program: package:
        prev.runCommand name {
          pname = name;
          version = "debian";
          meta.mainProgram = program;
        } ''
          mkdir -p $out/bin
          ln -s ${package}/bin/* $out/bin
        '';
      each = package: names: lib.genAttrs names (name: from name name package);
    in
    each host.tools [
      "coreutils"
      "diffutils"
      "findutils"
      "gnugrep"
      "gnused"
    ]
    // lib.genAttrs [
      "bash"
      "bashInteractive"
      "bashNonInteractive"
    ] (name: from name "bash" host.tools)
    // each host.userland [
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
      "netcat"
      "patch"
      "procps"
      "ripgrep"
      "strace"
      "tini"
      "util-linux"
      "which"
    ]
    // lib.genAttrs [
      "perl"
      "tmux"
      "unzip"
    ] (name: from name name (host.fromHost {
      inherit name;
      packages = [ (if name == "perl" then "perl-base" else name) ];
    }))
    // {
      # What scripts in Python compares its packages with.
      pypy2Packages = { };
      pypy3Packages = { };
      # Nix builds as root here, and the scripts of nixpkgs' own need no checks of ours.
      fakeroot = final.writeShellScriptBin "fakeroot" ''exec "$@"'';
      lndir = final.writeShellScriptBin "lndir" ''cp -rs --no-clobber "$2/." "''${3-.}"'';
      dash = from "dash" "bash" host.tools;
      file = from "file" "file" host.file;
      ncurses = lib.makeOverridable (_: from "ncurses" "tput" host.userland) { };
      cacert = final.runCommand "cacert" { } ''
        mkdir -p $out/etc/ssl/certs
        cp ${host.userland}/lib/ca-certificates.crt $out/etc/ssl/certs/ca-bundle.crt
      '';
      # With what the host's programs look for in places of Debian's.
      dockerTools = prev.dockerTools // {
        streamLayeredImage =
          given:
          prev.dockerTools.streamLayeredImage (
            given
            // {
              extraCommands = given.extraCommands + ''
                mkdir -p usr/lib/locale lib
                cp -r /usr/lib/locale/C.utf8 usr/lib/locale
                cp -r /lib/terminfo lib
              '';
            }
          );
      };
      # By the file's own address; PyPI's mirrors need not have the other.
      fetchPypi =
        arguments:
        let
          name = "${lib.replaceStrings [ "_" ] [ "-" ] arguments.pname}-${arguments.version}";
        in
        if wheels.others ? ${name} then
          final.fetchurl {
            inherit (arguments) hash;
            inherit (wheels.others.${name}) url;
          }
        else
          prev.fetchPypi arguments;
      runtimeShell = lib.getExe final.bash;
      python3 = python3 final;
      python3Packages = final.python3.pkgs;
    };

  withoutHaskell = final: _: {
    shellcheck-minimal = final.bash // {
      compiler.bootstrapAvailable = false;
    };
  };
in
import nixpkgs {
  system = "x86_64-linux";
  stdenvStages =
    arguments: lib.take 2 (import (nixpkgs + "/pkgs/stdenv/native") (removeAttrs arguments [ "crossOverlays" ]));
  overlays = [
    native
    withoutHaskell
  ];
}
