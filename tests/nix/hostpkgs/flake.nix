{
  description = "The part of nixpkgs that tmux-debug-mcp uses, made of a Debian host's programs and PyPI's wheels";

  outputs = _: {
    # Debian 12's Nix does not say it of flakes yet, and flake-parts asks.
    _type = "flake";
    lib = import ./lib.nix;
    legacyPackages = (import ./lib.nix).genAttrs [
      "x86_64-linux"
      "aarch64-linux"
    ] (system: import ./. { inherit system; });
  };
}
