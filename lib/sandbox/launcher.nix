# The command that runs a sandbox's image with podman.
{
  pkgs,
  image,
  mounts,
  cpus,
  memoryMb,
  network,
  podmanArgs,
}:

let
  inherit (pkgs) lib;

  flags = [
    "--rm"
    "--interactive"
    "--detach-keys="
    "--log-driver=none"
    "--pull=never"
    "--cap-drop=all"
    "--security-opt=no-new-privileges"
    "--read-only"
    "--http-proxy=false"
    "--pids-limit=4096"
  ]
  ++ lib.optional (memoryMb != null) "--memory=${toString memoryMb}m"
  ++ lib.optional (cpus != null) "--cpus=${toString cpus}"
  ++ lib.optional (network != null) "--network=${network}";

  wordsOf = mount: [
    mount.source
    mount.dest
    (mount.mode or "rw")
    (if mount.optional or false then "optional" else "required")
  ];
in
pkgs.writeShellApplication {
  name = "tmux-debug-sandbox";
  runtimeInputs = [
    pkgs.coreutils
    pkgs.util-linux
  ];
  text = ''
    # What users give may look like mistakes of a script.
    # shellcheck disable=all
    {
      image=localhost/${image.imageName}:${image.imageTag}
      stream=${image}
      flags=(${lib.escapeShellArgs flags})
      more=(${lib.escapeShellArgs podmanArgs})
      mounts=(${lib.escapeShellArgs (lib.concatMap wordsOf mounts)})
    }

    ${builtins.readFile ./launcher.sh}
  '';
}
