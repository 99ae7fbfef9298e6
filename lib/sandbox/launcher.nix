# The command that runs a sandbox's image with podman.
{
  pkgs,
  # The command's.
  name,
  image,
  mounts,
  # Directories in memory.
  writableDirs,
  # Variables that are passed in.
  passEnv,
  # Whether Nix works inside, by the host's daemon.
  nix,
  # Whether a shell runs where no command is given.
  isShell,
  cpus,
  memoryMb,
  # podman's, or null for its default.
  network,
  # Pairs of a name and a port: those that are reached in any case, and those with
  # WRAPIX_NETWORK=limit.
  hosts,
  limited,
  secrets,
  # Pairs of a port of the host and one of the container, where it leads.
  ports,
  # Ports of the host that can be reached from inside.
  hostPorts,
  # The image of the proxy; null where none is ever needed.
  proxy,
  protect,
  # Whether the repository of a linked worktree of git's is mounted.
  worktree,
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
    "--hostname=sandbox"
    "--pids-limit=4096"
  ]
  ++ lib.optionals (memoryMb != null) [
    "--memory=${toString memoryMb}m"
    # With the same for both, nothing is swapped.
    "--memory-swap=${toString memoryMb}m"
  ]
  ++ lib.optional (cpus != null) "--cpus=${toString cpus}";

  wordsOf = mount: [
    mount.source
    mount.dest
    mount.mode
    (if mount.optional then "optional" else "required")
  ];
  wordsOfSecret =
    secret:
    secret.target
    ++ [
      secret.variable
      secret.header
      secret.prefix
      secret.urlVariable
    ];
in
pkgs.writeShellApplication {
  inherit name;
  runtimeInputs = [
    pkgs.coreutils
    pkgs.findutils
    pkgs.gnugrep
    pkgs.util-linux
  ];
  text = ''
    # What users give may look like mistakes of a script.
    # shellcheck disable=all
    {
      self=${name}
      image=localhost/${image.imageName}:${image.imageTag}
      stream=${image}
      flags=(${lib.escapeShellArgs flags})
      more=(${lib.escapeShellArgs podmanArgs})
      mounts=(${lib.escapeShellArgs (lib.concatMap wordsOf mounts)})
      protect=(${lib.escapeShellArgs protect})
      writable=(${lib.escapeShellArgs writableDirs})
      passed=(${lib.escapeShellArgs passEnv})
      has_nix=${lib.optionalString nix "yes"}
      is_shell=${lib.optionalString isShell "yes"}
      worktree=${lib.optionalString worktree "yes"}
      network=${lib.escapeShellArg (if network == null then "" else network)}
      hosts=(${lib.escapeShellArgs (lib.concatLists hosts)})
      limited=(${lib.escapeShellArgs (lib.concatLists limited)})
      secrets=(${lib.escapeShellArgs (lib.concatMap wordsOfSecret secrets)})
      ports=(${lib.escapeShellArgs (map toString (lib.concatLists ports))})
      host_ports=(${lib.escapeShellArgs (map toString hostPorts)})
      proxy_image=${
        lib.optionalString (proxy != null) "localhost/${proxy.imageName}:${proxy.imageTag}"
      }
      proxy_stream=${lib.optionalString (proxy != null) "${proxy}"}
    }

    ${builtins.readFile ./paths.sh}
    ${builtins.readFile ./protect.sh}
    ${builtins.readFile ./worktree.sh}
    ${builtins.readFile ./network.sh}
    ${builtins.readFile ./end.sh}
    ${builtins.readFile ./launcher.sh}
  '';
}
