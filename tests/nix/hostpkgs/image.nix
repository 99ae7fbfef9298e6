# dockerTools: images in the form that podman loads. Where nixpkgs makes them while they are read, here they are made
# before.
{ lib, packages }:
{
  streamLayeredImage =
    {
      name,
      contents,
      extraCommands,
      config,
      maxLayers,
    }:
    let
      archive = packages.runCommand "${name}.tar" {
        nativeBuildInputs = [ packages.python3 ];
        inherit contents extraCommands;
        config = builtins.toJSON config;
        passAsFile = [
          "config"
          "extraCommands"
        ];
        exportReferencesGraph = [
          "graph"
          (packages.writeText "${name}-roots" (toString contents + extraCommands + builtins.toJSON config))
        ];
        # Where the host's programs look for locales and terminals (README.md).
        data = [
          "/usr/lib/locale/C.utf8"
          "/lib/terminfo"
        ];
      } ''
        tag=''${out#/nix/store/}
        mkdir root
        cd root
        for content in $contents; do
          cp -a "$content/." .
          chmod u+w .
        done
        source "$extraCommandsPath"
        for directory in $data; do
          mkdir -p ".''${directory%/*}"
          cp -r "$directory" ".$directory"
        done
        grep -h ^/nix/store/ ../graph | sort -u |
          python3 ${./image.py} "${name}:''${tag%%-*}" "$configPath" ${toString maxLayers} >"$out"
      '';
    in
    packages.writeScript "stream-${name}" "echo 'Creating layer 1 from paths' >&2; exec cat ${archive}"
    // {
      imageName = name;
      imageTag = lib.head (lib.splitString "-" (baseNameOf (builtins.unsafeDiscardStringContext archive.outPath)));
    };
}
