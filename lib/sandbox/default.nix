# Sandboxes: containers in which an agent, and what it starts, has a project's directory and no
# more.
{
  pkgs,
  mcpConfig,
  mcpServers,
}:

let
  inherit (pkgs) lib;
  inherit (import ../options.nix { inherit lib; }) checked;
  inherit (import ./checks.nix { inherit lib; }) mistakeIn problemIn;
  inherit (import ./hosts.nix { inherit lib; }) pairOf portsOf;

  profiles = import ./profiles.nix { inherit pkgs; };

  # What starts programs on the host: of each client in tmux_debug_mcp/clients/table.py, its
  # servers, hooks, agents, commands, skills, plugins and tasks; of git and direnv, what they run.
  protectDefault = [
    ".agents"
    ".claude/agents"
    ".claude/commands"
    ".claude/hooks"
    ".claude/settings*.json"
    ".claude/skills"
    ".codex"
    ".cursor"
    ".devcontainer"
    ".devcontainer.json"
    ".envrc"
    ".gemini"
    ".git/commondir"
    ".git/config"
    ".git/config.worktree"
    ".git/hooks"
    ".git/worktrees/*/commondir"
    ".git/worktrees/*/config.worktree"
    ".git/worktrees/*/gitdir"
    ".goose"
    ".husky"
    ".idea"
    ".mcp.json"
    ".opencode"
    ".vscode"
    ".zed"
    "opencode.json"
    "opencode.jsonc"
  ];

  options = import ./options.nix {
    inherit
      lib
      mcpServers
      profiles
      protectDefault
      ;
  };

  # Where in the container a mount is to be.
  inContainer =
    dest:
    lib.removeSuffix "/" (
      if lib.hasPrefix "~" dest then "/home/sandbox" + lib.removePrefix "~" dest else dest
    );
in
{
  /**
    What sandboxes are for: `base`, `python` and `rust`. A profile of yours is such a set.

    # Type

    ```
    profiles :: {
      ${profile} :: {
        name :: String,
        packages :: [Derivation],
        env :: { ${variable} :: String },
        mounts :: [{ source :: String, dest :: String, mode :: String, optional :: Bool }],
        networkAllowlist :: [String],
        enabledPlugins :: { ${plugin} :: Bool },
        shellHook :: String,
        writableDirs :: [String]
      }
    }
    ```
  */
  inherit profiles;

  /**
    What `mkSandbox` protects where `protect` is not given, to be added to.

    # Type

    ```
    protectDefault :: [String]
    ```

    # Examples

    ```nix
    mkSandbox { protect = protectDefault ++ [ "Makefile" ]; }
    => «derivation /nix/store/...-tmux-debug-sandbox.drv»
    ```
  */
  inherit protectDefault;

  /**
    What `mkSandbox` takes, as options of modules.

    # Type

    ```
    sandboxOptions :: { ${option} :: Option }
    ```
  */
  sandboxOptions = options;

  /**
    A sandbox: an image for containers, and a command that runs it with podman, with a project's
    directory at /workspace. It is the package of that command, for a shell, or a shell itself.

    # Inputs

    A set with any of the `sandboxOptions`, each of which has a description.

    # Type

    ```
    mkSandbox :: { ${option} :: Any } -> Derivation // {
      package :: Derivation,
      image :: Derivation,
      profile :: Profile
    }
    ```

    # Examples

    ```nix
    (mkSandbox { profile = profiles.rust; mcp.tmux-debug = { }; }).package
    => «derivation /nix/store/...-tmux-debug-sandbox.drv»
    mkSandbox { mcp.tmux-debug.scop = "main"; }
    => error: The option `mcp.tmux-debug.scop' does not exist. Definition values:
       - In `mkSandbox': "main"

       Did you mean `mcp.tmux-debug.scope'?
    mkSandbox { deployKey = "project"; }
    => error: mkSandbox: `deployKey` is refused: this sandbox handles no keys. Mount one with
       `mounts`.
    ```
  */
  mkSandbox =
    arguments:
    let
      # With their types; and, after that, as they go together.
      typed = checked "mkSandbox" options arguments;
      given = lib.deepSeq unused (refuse problem typed);
      refuse = reason: lib.throwIf (reason != null) "mkSandbox: ${reason}";
      problem = problemIn {
        inherit places;
        inherit (pkgs.stdenv.hostPlatform) system;
        options = typed;
      };
      places = map (mount: mount.dest) mounts ++ writableDirs;
      # What has no effect here, and is looked at all the same.
      unused = [
        typed.deployKey
        typed.mcpRuntime
        typed.model
      ];
      ports = map (port: if lib.isInt port then [ port port ] else portsOf port) typed.ports;

      mcp = lib.filterAttrs (_: options: options != null) given.mcp;
      configs =
        (mcpConfig (lib.mapAttrs (_: options: removeAttrs options [ "scope" ]) mcp)).mcpServers;
      configsOf = scope: lib.filterAttrs (name: _: mcp.${name}.scope == scope) configs;

      profile = removeAttrs given.profile [
        "toolchain"
        "withToolchain"
      ] // {
        env = nixEnv // given.profile.env // given.env // gitIdentity;
        mounts = given.profile.mounts ++ given.mounts;
        networkAllowlist =
          given.profile.networkAllowlist
          ++ (if given.networkAllowlist == null then [ ] else given.networkAllowlist);
        packages =
          given.packages
          ++ given.profile.packages
          ++ lib.concatMap (name: mcpServers.${name}.packages) (lib.attrNames mcp)
          ++ lib.optional given.nix pkgs.nix
          ++ lib.optional (given.agent != null) given.agent;
      };
      gitIdentity = lib.optionalAttrs (given.git != null) {
        GIT_AUTHOR_NAME = given.git.name;
        GIT_AUTHOR_EMAIL = given.git.email;
        GIT_COMMITTER_NAME = given.git.name;
        GIT_COMMITTER_EMAIL = given.git.email;
      };

      nixEnv = lib.optionalAttrs given.nix {
        NIX_CONFIG = "experimental-features = nix-command flakes";
        NIX_REMOTE = "daemon";
      };

      isClosed = given.allowedHosts != null;
      hosts = map (pairOf "443") (if isClosed then given.allowedHosts else [ ]);
      limited = map (pairOf "*") profile.networkAllowlist;
      # A profile's own list is enforced only where somebody asks for it.
      hasProxy =
        hosts ++ given.secrets ++ ports ++ given.hostPorts != [ ]
        || given.networkAllowlist != null && limited != [ ];

      image = import ./image.nix {
        inherit hasProxy pkgs profile;
        inherit (given) agent sessions;
        serverEnv = lib.foldl' (all: config: all // config.env) { } (lib.attrValues configs);
        shellEnv =
          if given.inputsFrom == [ ] then
            null
          else
            import ./shell.nix {
              inherit pkgs;
              shells = given.inputsFrom;
            };
        files =
          import ./home.nix {
            inherit lib;
            inherit (profile) enabledPlugins;
            subagents = lib.mapAttrs (
              name: config: mcpServers.${name}.subagent // { inherit config; }
            ) (configsOf "subagent");
            servers = configsOf "main";
          }
          // import ./agents.nix {
            inherit lib;
            servers = configsOf "main";
          };
      };

      mounts = map (mount: mount // { dest = inContainer mount.dest; }) (
        typed.profile.mounts ++ typed.mounts
      );
      # The home directory is in memory in any case.
      writableDirs = lib.subtractLists [ "/home/sandbox" ] (
        map inContainer typed.profile.writableDirs
      );

      package = import ./launcher.nix {
        inherit
          hosts
          image
          limited
          mounts
          pkgs
          ports
          writableDirs
          ;
        isShell = given.agent == null;
        network = if isClosed then "none" else given.network;
        proxy = if hasProxy then import ./proxy { inherit pkgs; } else null;
        secrets = map (secret: secret // { target = pairOf "443" secret.host; }) given.secrets;
        inherit (given)
          cpus
          hostPorts
          memoryMb
          name
          nix
          passEnv
          podmanArgs
          protect
          worktree
          ;
      };
    in
    # With `nix develop` the command is on the PATH, and in a list of packages it is a package.
    refuse (mistakeIn arguments) (pkgs.runCommand package.name) {
      nativeBuildInputs = [ package ];
      inherit (profile) shellHook;
      passthru = { inherit image package profile; };
      meta.mainProgram = package.name;
    } "ln -s ${package} $out";
}
