# wrapix' own sandboxes with our server under wrapix' name for it; and ours with wrapix' profiles.
{
  nixpkgs,
  # With our line in the registry.
  wrapix,
}:

let
  # What wrapix makes itself, or has of other flakes.
  others = final: _: {
    beads = final.bash;
    beads-push = final.bash;
    gc = final.bash;
    prek = final.bash;
  };
  ours = import ./nixpkgs.nix {
    inherit nixpkgs;
    legacyPackages = import ./package-sets.nix {
      inherit nixpkgs;
      overlays = [
        others
        ours.overlays.default
      ];
    };
  };
  system = "x86_64-linux";
  pkgs = ours.nixpkgs.${system};

  theirs = import (wrapix + "/lib/sandbox") {
    inherit pkgs system;
    linuxPkgs = pkgs;
    treefmt = pkgs.bash;
  };
  sandboxOf = arguments: (theirs.mkSandbox arguments).image.drvPath;
in
{
  chosen = sandboxOf { mcp.tmux.audit = "/workspace/audit.log"; };
  atRunTime = sandboxOf { mcpRuntime = true; };
  profile = ((ours.lib.mkLib pkgs).mkSandbox { profile = theirs.profiles.base; }).drvPath;
}
