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

  # The main programs of agents that don't read Claude Code's files.
  otherAgents = [
    "codex"
    "gemini"
    "opencode"
  ];

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
      asked = lib.throwIf (mistake != null) "mkSandbox: ${mistake}" (
        checked "mkSandbox" options arguments
      );
      given = lib.deepSeq unused (lib.throwIf (problem != null) "mkSandbox: ${problem}" asked);

      # What many mean, and what the types of the options would refuse in their own words.
      mistake =
        let
          is = name: test: lib.isAttrs arguments && arguments ? ${name} && test arguments.${name};
          server = lib.findFirst (name: lib.isBool arguments.mcp.${name}) null (
            lib.attrNames arguments.mcp
          );
        in
        if lib.isAttrs arguments && arguments ? callPackage then
          "the argument is a package set, which is for `mkLib`: (mkLib pkgs).mkSandbox { }"
        else if is "profile" lib.isString then
          "`profile` is a string. Give the profile itself: profile = profiles.${arguments.profile};"
        else if is "mcp" (mcp: !lib.isAttrs mcp) then
          "`mcp` should be a set with the options of each server: mcp.tmux-debug = { };"
        else if is "mcp" lib.isAttrs && server != null then
          "`mcp.${server}` should be the server's options: mcp.${server} = { };"
        else if is "agent" lib.isString then
          "`agent` is a string. Give the package: agent = pkgs.${arguments.agent};"
        else
          null;

      isClosed = asked.allowedHosts != null;
      hasNoNetwork = isClosed || asked.network == "none";
      # The first that stands in a list more than once.
      twice = list: lib.findFirst (one: lib.count (other: other == one) list > 1) null list;
      badVariable = lib.findFirst (
        name: builtins.match "[a-zA-Z_][a-zA-Z0-9_]*" name == null
      ) null (lib.attrNames (asked.profile.env // asked.env));
      detached = lib.findFirst (
        word: builtins.match "-[it]*d[it]*|--detach(=true)?" word != null
      ) null asked.podmanArgs;
      networked = lib.findFirst (
        word: builtins.match "--net(work)?(=.*)?" word != null
      ) null asked.podmanArgs;
      # What programs inside reach, and what leads there.
      innerPorts =
        asked.hostPorts
        ++ lib.optional (
          isClosed && asked.allowedHosts != [ ] || asked.networkAllowlist != null
        ) 3128
        ++ lib.imap0 (index: _: 3129 + index) asked.secrets;
      places = map (mount: mount.dest) mounts ++ writableDirs;
      variables = lib.concatMap (secret: [
        secret.variable
        secret.urlVariable
      ]) asked.secrets;
      problem =
        if isClosed && !lib.elem asked.network [ null "none" ] then
          "`network` is \"${asked.network}\", but with `allowedHosts` there is none."
          + " Remove one of them."
        else if hasNoNetwork && networked != null then
          "`podmanArgs` has ${networked}, but this sandbox has no network of its own. Remove it."
        else if detached != null then
          "`podmanArgs` has ${detached}, but a sandbox ends with its command. Remove it."
        else if !isClosed && asked.secrets != [ ] then
          "`secrets` need a closed network: set `allowedHosts`, to [ ] if no other host is needed."
        else if hasNoNetwork && asked.nix then
          "`nix` needs an open network: the host's daemon fetches whatever it is asked for."
          + " Remove `allowedHosts` and `network`, or `nix`."
        else if twice places != null then
          "`mounts` and `writableDirs` have ${twice places} more than once."
          + " Each `dest` can have one `source`."
        else if twice (variables ++ asked.passEnv) != null then
          "${twice (variables ++ asked.passEnv)} stands more than once in `secrets` and `passEnv`."
          + " Each variable can have one value."
        else if badVariable != null then
          "`env` has ${builtins.toJSON badVariable}, which is no name of a variable."
        else if twice (map lib.head ports) != null then
          "`ports` has ${toString (twice (map lib.head ports))} more than once."
        else if twice innerPorts != null then
          "port ${toString (twice innerPorts)} inside would be for two things:"
          + " `hostPorts`, and the proxy of `allowedHosts` or `secrets`."
        else if asked.agent != null && !(asked.agent.meta or { } ? mainProgram) then
          "`agent` is ${asked.agent.name or "a package"}, which doesn't say its main program."
          + " Name it: pkgs.writeShellScriptBin \"agent\" ''exec \${package}/bin/PROGRAM \"$@\"''"
        else if claudeOnly != [ ] then
          "${lib.concatStringsSep " and " claudeOnly} are for Claude Code alone,"
          + " but `agent` is ${asked.agent.name}."
        else
          null;
      # What another agent would not read.
      claudeOnly = lib.optionals (lib.elem (asked.agent.meta.mainProgram or null) otherAgents) (
        lib.optional (lib.any (options: options != null && options.scope == "subagent") (
          lib.attrValues asked.mcp
        )) "servers with the scope \"subagent\" (\"main\" is for all agents)"
        ++ lib.optional (asked.sessions != null) "`sessions`"
        ++ lib.optional (asked.profile.enabledPlugins != { }) "`enabledPlugins`"
      );
      # What has no effect here, and is looked at all the same.
      unused = [
        asked.deployKey
        asked.mcpRuntime
        asked.model
        asked.profile.networkAllowlist
      ];
      ports = map (port: if lib.isInt port then [ port port ] else portsOf port) asked.ports;

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
        asked.profile.mounts ++ asked.mounts
      );
      # The home directory is in memory in any case.
      writableDirs = lib.subtractLists [ "/home/sandbox" ] (
        map inContainer asked.profile.writableDirs
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
    pkgs.runCommand package.name {
      nativeBuildInputs = [ package ];
      inherit (profile) shellHook;
      passthru = { inherit image package profile; };
      meta.mainProgram = package.name;
    } "ln -s ${package} $out";
}
