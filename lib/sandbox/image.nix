# The image of a sandbox: its packages in one /bin, a user who is not root, and an entrypoint.
{
  pkgs,
  profile,
  # Files for agents and shells: their texts, by their paths in the image. The entrypoint brings
  # those in etc/skel to the home directory.
  files,
  # The variables of the servers, for what is started in the main session.
  serverEnv,
  # The environment of development shells, from shell.nix; null for none.
  shellEnv,
  # What is run where no command is given; null for a shell.
  agent,
  # The directory in the project where Claude Code keeps its sessions; null for none.
  sessions,
  # Whether there may be a proxy outside, to which something inside has to pass connections on.
  hasProxy,
}:

let
  inherit (pkgs) lib;

  programs = pkgs.buildEnv {
    name = "sandbox-programs";
    # What the entrypoint needs comes last. Of two programs with a name, it is the first.
    paths = lib.imap1 lib.setPrio (
      profile.packages
      ++ [
        pkgs.bashInteractive
        pkgs.coreutils
        pkgs.jq
      ]
      ++ lib.optional hasProxy pkgs.socat
    );
    ignoreCollisions = true;
    pathsToLink = [
      "/bin"
      "/share"
    ];
  };

  certificates = "${pkgs.cacert}/etc/ssl/certs/ca-bundle.crt";

  install = path: text: ''
    install -Dm 644 ${pkgs.writeText "sandbox-file" text} ${path}
  '';
in
pkgs.dockerTools.streamLayeredImage {
  name = "tmux-debug-sandbox-${profile.name}";
  # So many that a change of one package stores that again, and not all others.
  maxLayers = 20;
  contents = [ programs ] ++ lib.optional (shellEnv != null) shellEnv;

  # Whoever runs the image may have another number than the user in it.
  extraCommands = ''
    mkdir -p etc/skel etc/ssl/certs home usr/bin var
    mkdir -m 1777 home/sandbox tmp var/tmp workspace
    install -m 644 ${./etc/bashrc} etc/skel/.bashrc
    ln -s /bin/env usr/bin/env
    ln -s ${certificates} etc/ssl/certs/ca-bundle.crt
    ln -s ${certificates} etc/ssl/certs/ca-certificates.crt
    install -m 644 ${./etc/passwd} etc/passwd
    install -m 644 ${./etc/group} etc/group
    install -m 644 ${./etc/hosts} etc/hosts
    install -m 755 ${./entrypoint.sh} entrypoint.sh
    # For `packed-refs` of a worktree's repository, git makes a lock at the end of a chain of links,
    # five at most, and renames it to that place. Here the place is a link that belongs to root, so
    # the rename fails, and git goes on reading what the repository has.
    mkdir -m 1777 var/packed-refs
    for number in 1 2 3 4; do
      ln -s $((number + 1)) var/packed-refs/$number
    done
    ln -s /run/repository/packed-refs var/packed-refs/5
    ${lib.concatStrings (lib.mapAttrsToList install files)}
  '';

  config = {
    User = "1000:1000";
    WorkingDir = "/workspace";
    # The first process reaps what others leave behind, and passes signals on to all of the
    # command's group, as a terminal does.
    Entrypoint = [
      (lib.getExe pkgs.tini)
      "-s"
      "-g"
      "--"
      "/entrypoint.sh"
    ];
    # Not the one that a development shell may have before it, which can't edit lines.
    Cmd = [ (if agent == null then "/bin/bash" else lib.getExe agent) ];
    Env = lib.mapAttrsToList (name: value: "${name}=${value}") (
      {
        HOME = "/home/sandbox";
        LANG = "C.UTF-8";
        PATH = "/bin";
        SHELL = "/bin/bash";
        SSL_CERT_FILE = certificates;
        USER = "sandbox";
      }
      // serverEnv
      // lib.optionalAttrs (sessions != null) { TMUX_DEBUG_SANDBOX_SESSIONS = sessions; }
      // profile.env
    );
  };
}
