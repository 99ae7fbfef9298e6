{
  description = "The part of nixpkgs that tmux-debug-mcp uses, made of a Debian host's programs and PyPI's wheels";

  outputs = _: {
    lib = import ./lib.nix;
    legacyPackages = (import ./lib.nix).genAttrs [
      "x86_64-linux"
      "aarch64-linux"
    ] (system: import ./. { inherit system; });
  };
}
