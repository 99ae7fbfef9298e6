# mkDerivation: `phases` is the script that makes $out.
{
  lib,
  system,
  tools,
}:
rec {
  mkDerivation =
    {
      name ? "${attributes.pname}-${attributes.version}",
      nativeBuildInputs ? [ ],
      propagatedBuildInputs ? [ ],
      hooks ? [ ],
      meta ? { },
      passthru ? { },
      ...
    }@attributes:
    derivation (
      removeAttrs attributes [
        "meta"
        "passthru"
      ]
      // {
        inherit
          hooks
          name
          nativeBuildInputs
          propagatedBuildInputs
          system
          ;
        builder = lib.getExe tools;
        args = [ ./build.sh ];
        initialPath = tools;
        # What `nix develop` asks for.
        stdenv = ./stdenv;
        outputs = [ "out" ];
      }
    )
    // {
      inherit
        meta
        nativeBuildInputs
        passthru
        propagatedBuildInputs
        ;
      stdenv = {
        inherit mkDerivation;
      };
    }
    // passthru;
}
