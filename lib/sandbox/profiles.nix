# The profiles: what sandboxes are for, each with its packages, its environment, its mounts, and the
# hosts that its package managers need.
{ pkgs }:

let
  inherit (pkgs) lib;

  # A container has nothing but these: a shell, what scripts take for granted, and what one debugs
  # with.
  basePackages = [
    pkgs.bashInteractive
    pkgs.coreutils
    pkgs.curl
    pkgs.diffutils
    pkgs.file
    pkgs.findutils
    pkgs.gawk
    pkgs.git
    pkgs.gnugrep
    pkgs.gnumake
    pkgs.gnused
    pkgs.gnutar
    pkgs.gzip
    pkgs.iproute2
    pkgs.jq
    pkgs.less
    pkgs.lsof
    pkgs.nano
    pkgs.ncurses
    pkgs.netcat
    pkgs.patch
    pkgs.procps
    pkgs.ripgrep
    pkgs.strace
    pkgs.util-linux
    pkgs.which
  ];

  mkProfile =
    {
      name,
      packages ? [ ],
      env ? { },
      networkAllowlist ? [ ],
    }:
    {
      inherit name networkAllowlist;
      env = {
        EDITOR = "nano";
      }
      // env;
      packages = basePackages ++ packages;
      mounts = [ ];
      enabledPlugins = { };
      shellHook = "";
      writableDirs = [ ];
    };
in
lib.mapAttrs (name: attributes: mkProfile ({ inherit name; } // attributes)) {
  base = { };

  # The tools keep what they download in the project, since the home directory ends with the
  # container. A Python that uv downloads would find no loader. Packages from PyPI are linked with
  # libraries that every Linux is said to have.
  python = {
    packages = [
      pkgs.gdb
      pkgs.python3
      pkgs.ruff
      pkgs.uv
    ];
    env = {
      LD_LIBRARY_PATH = lib.makeLibraryPath [
        pkgs.stdenv.cc.cc.lib
        pkgs.zlib
      ];
      UV_CACHE_DIR = "/workspace/.uv-cache";
      UV_PYTHON_DOWNLOADS = "never";
    };
    networkAllowlist = [
      "files.pythonhosted.org"
      "pypi.org"
    ];
  };

  rust = {
    packages = [
      pkgs.cargo
      pkgs.clippy
      pkgs.gcc
      pkgs.gdb
      pkgs.pkg-config
      pkgs.rustc
      pkgs.rustfmt
    ];
    env = {
      CARGO_HOME = "/workspace/.cargo";
      RUST_BACKTRACE = "1";
    };
    networkAllowlist = [
      "crates.io"
      "index.crates.io"
      "static.crates.io"
    ];
  };
}
