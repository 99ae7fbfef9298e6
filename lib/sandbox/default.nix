# Sandboxes: containers in which an agent, and what it starts, has a project's directory and no more.
{
  pkgs,
  mcpConfig,
  mcpServers,
}:

let
  inherit (pkgs) lib;
  inherit (import ../arguments.nix { inherit lib; })
    allOf
    anything
    checked
    closedSet
    is
    isOrNull
    listOf
    setOf
    ;

  inherit (import ../mcp/clients.nix { inherit lib; }) scopes;

  profiles = import ./profiles.nix { inherit pkgs; };

  protectDefault = [
    ".claude/agents"
    ".claude/commands"
    ".claude/hooks"
    ".claude/settings*.json"
    ".claude/skills"
    ".envrc"
    ".git/commondir"
    ".git/config"
    ".git/config.worktree"
    ".git/hooks"
    ".husky"
    ".idea"
    ".mcp.json"
    ".vscode"
  ];

  defaults = {
    agent = null;
    allowedHosts = null;
    cpus = null;
    env = { };
    mcp = { };
    memoryMb = 4096;
    mounts = [ ];
    network = null;
    networkAllowlist = [ ];
    packages = [ ];
    podmanArgs = [ ];
    profile = profiles.base;
    protect = protectDefault;
    secrets = [ ];
    worktree = false;
  };

  isText = is "a string" lib.isString;
  isVariable = is "the name of a variable" (matches "[a-zA-Z_][a-zA-Z0-9_]*");
  isNumber = value: lib.isInt value || lib.isFloat value;
  isPath = is "a string with a path that starts with / or ~" (
    value: lib.isString value && builtins.match "(/|~$|~/).*" value != null
  );
  namesVariables =
    name: value:
    let
      others = lib.filter (variable: builtins.match "[a-zA-Z_][a-zA-Z0-9_]*" variable == null) (
        lib.attrNames value
      );
    in
    if others == [ ] then
      null
    else
      "`${name}.${lib.head others}` is no variable: these have names of letters, digits and _.";

  # Hosts of the internet. An address has no name that could be looked at, and needs no resolving.
  hostName = "(\\*\\.)?([a-z0-9_]([a-z0-9_-]*[a-z0-9_])?\\.)+[a-z]([a-z0-9-]*[a-z0-9])?";
  matches = pattern: value: lib.isString value && builtins.match pattern value != null;
  isHost = is ''a host's name in lower case, such as "api.example.com" or "*.example.org"'' (
    matches hostName
  );
  isHostWithPort =
    is ''a host's name in lower case, such as "api.example.com" or "*.example.org:443"''
      (value: matches "${hostName}(:[1-9][0-9]*)?" value && builtins.fromJSON (lib.elemAt (pairOf "443" value) 1) < 65536);

  # The name and the port of a host.
  pairOf =
    port: host:
    let
      parts = lib.splitString ":" host;
    in
    [ (lib.head parts) ] ++ (if lib.length parts == 2 then lib.tail parts else [ port ]);

  isProtectable = is "a path in the project without `..`, in whose last part there may be a *" (
    value:
    lib.isString value
    && builtins.match "([^/*?[\n]+/)*[^/?[\n]+" value != null
    && lib.intersectLists (lib.splitString "/" value) [
      "."
      ".."
    ] == [ ]
  );

  # Where in the container a mount is to be.
  inContainer =
    dest:
    lib.removeSuffix "/" (
      if lib.hasPrefix "~" dest then "/home/sandbox" + lib.removePrefix "~" dest else dest
    );

  # What the parameters and the profiles share.
  contents = {
    env = allOf [
      (setOf isText)
      namesVariables
    ];
    mounts = listOf (closedSet {
      kind = "part";
      checks = {
        dest = allOf [
          isPath
          (is "another place than / and /workspace" (
            dest:
            !lib.elem (inContainer dest) [
              ""
              "/workspace"
            ]
          ))
        ];
        mode = is ''"ro" or "rw"'' (value: value == "ro" || value == "rw");
        optional = is "true or false" lib.isBool;
        source = isPath;
      };
      required = [
        "dest"
        "source"
      ];
    });
    networkAllowlist = listOf isHost;
    packages = listOf (is "a package" lib.isDerivation);
  };

  # What wrapix has and this sandbox has not. Left out in silence, it would be missed.
  refused = {
    deployKey = "this sandbox knows no keys. Mount one with `mounts`.";
    mcpRuntime = "the servers are chosen when the image is built. Name them in `mcp`.";
    model = "the agent chooses its model. Set the variable that it reads, such as ANTHROPIC_MODEL, with `env`.";
  };

  checkArguments = closedSet {
    kind = "parameter";
    inherit refused;
    checks = contents // {
      agent = isOrNull "a package, whose main program is started" "none" lib.isDerivation;
      allowedHosts =
        name: value: if value == null then null else listOf isHostWithPort name value;
      cpus = isOrNull "a number above 0" "no limit" (value: isNumber value && value > 0);
      mcp = closedSet {
        kind = "MCP server";
        checks = lib.mapAttrs (
          _: server:
          closedSet {
            kind = "option";
            checks = lib.genAttrs server.options (_: anything) // {
              scope = is (lib.concatMapStringsSep " or " builtins.toJSON scopes) (
                value: lib.elem value scopes
              );
            };
          }
        ) mcpServers;
      };
      memoryMb = isOrNull "a whole number above 0" "no limit" (value: lib.isInt value && value > 0);
      network = isOrNull "a string for podman's --network" "podman's default" lib.isString;
      podmanArgs = listOf isText;
      profile = closedSet {
        kind = "part";
        checks = contents // {
          name = is "a string of lower-case letters, digits and inner dashes" (
            value: lib.isString value && builtins.match "[a-z0-9]+(-[a-z0-9]+)*" value != null
          );
        };
        required = [ "name" ];
      };
      protect = listOf isProtectable;
      secrets = listOf (closedSet {
        kind = "part";
        checks = {
          header = is "the name of a header" (matches "[A-Za-z0-9-]+");
          host = is "a host's name in lower case, such as \"api.example.com:443\"" (
            value: matches "[^*]*" value && isHostWithPort "" value == null
          );
          prefix = is "a string of letters, digits and blanks" (matches "[A-Za-z0-9 ]*");
          urlVariable = isVariable;
          variable = isVariable;
        };
        required = [
          "header"
          "host"
          "urlVariable"
          "variable"
        ];
      });
      worktree = is "true or false" lib.isBool;
    };
  };
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
        networkAllowlist :: [String]
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
    A sandbox: an image for containers, and a command that runs it with podman, which has a project's
    directory at /workspace. It is the package of that command, for a shell, or a shell itself.

    # Inputs

    A set with any of these:

    `profile`
    : what the sandbox is for, such as `profiles.rust`

    `mcp`
    : the options of each MCP server, by the server's name; `scope` is "subagent" (the default: a
      subagent of the server's name has its tools, and the main session has none) or "main"

    `packages`, `env`, `mounts`
    : what there is besides what the profile has; a mount's `source` may start with ~ for the home
      directory of whoever runs it, its `dest` with ~ for the one in the container; its `mode` is
      "rw" (the default) or "ro", and one that is `optional` is left out where there is no `source`

    `agent`
    : the package whose main program is run where no command is given; else a shell is

    `cpus`, `memoryMb`
    : limits, in processors and in MiB

    `network`
    : podman's `--network`

    `allowedHosts`
    : the hosts that are reached, each with a port (443 where it has none); there is no other network

    `networkAllowlist`
    : hosts that are reached, on any port, where the sandbox is started with WRAPIX_NETWORK=limit

    `secrets`
    : keys that are added to requests outside of the sandbox: those for `host`, which is told inside
      by `urlVariable`, get the `header` with `prefix` and the value that `variable` has outside

    `protect`
    : what of the project can't be changed inside, where it is there; `protectDefault` where not given

    `worktree`
    : whether the repository of a linked worktree of git's is mounted, with all its branches

    `podmanArgs`
    : more arguments for `podman run`, which come last

    # Type

    ```
    mkSandbox :: {
      profile :: Profile,
      mcp :: { ${server} :: { scope :: "subagent" | "main", ${option} :: String | Null } },
      packages :: [Derivation],
      env :: { ${variable} :: String },
      mounts :: [{ source :: String, dest :: String, mode :: "ro" | "rw", optional :: Bool }],
      agent :: Derivation | Null,
      cpus :: Number | Null,
      memoryMb :: Int | Null,
      network :: String | Null,
      allowedHosts :: [String] | Null,
      networkAllowlist :: [String],
      secrets :: [{
        host :: String,
        variable :: String,
        header :: String,
        prefix :: String,
        urlVariable :: String
      }],
      protect :: [String],
      worktree :: Bool,
      podmanArgs :: [String]
    } -> Derivation // { package :: Derivation, image :: Derivation, profile :: Profile }
    ```

    # Examples

    ```nix
    (mkSandbox { profile = profiles.rust; mcp.tmux-debug = { }; }).package
    => «derivation /nix/store/...-tmux-debug-sandbox.drv»
    mkSandbox { mcp.tmux-debug.scop = "main"; }
    => error: mkSandbox: Unknown option in `mcp.tmux-debug`: scop.
       Known: allowKill, audit, auditFull, cwd, dropEnv, env, keep, logDir, scope, secrets,
       shell, size, socket, tmux, toolsets.
    mkSandbox { deployKey = "project"; }
    => error: mkSandbox: `deployKey` is refused: this sandbox knows no keys. Mount one with `mounts`.
    ```
  */
  mkSandbox =
    arguments:
    let
      merged = defaults // checked "mkSandbox" checkArguments arguments;
      hasNetwork =
        !lib.elem merged.network [
          null
          "none"
        ];
      problem =
        if merged.allowedHosts != null && hasNetwork then
          "`network` is \"${merged.network}\", but with `allowedHosts` there is none. Leave one of them out."
        else if merged.allowedHosts == null && merged.secrets != [ ] then
          "`secrets` need a closed network: set `allowedHosts`, to [ ] where no other host is needed."
        else
          null;
      given = lib.throwIf (problem != null) "mkSandbox: ${problem}" merged;
      scopeOf = name: given.mcp.${name}.scope or (lib.head scopes);
      configs =
        (mcpConfig (lib.mapAttrs (_: options: removeAttrs options [ "scope" ]) given.mcp)).mcpServers;

      profile = {
        inherit (given.profile) name;
        env = given.profile.env or { } // given.env;
        mounts = given.profile.mounts or [ ] ++ given.mounts;
        networkAllowlist = given.profile.networkAllowlist or [ ] ++ given.networkAllowlist;
        packages =
          given.packages
          ++ given.profile.packages or [ ]
          ++ lib.concatMap (name: mcpServers.${name}.packages) (lib.attrNames given.mcp)
          ++ lib.optional (given.agent != null) given.agent;
      };

      isClosed = given.allowedHosts != null;
      network = if isClosed then "none" else given.network;
      hosts = map (pairOf "443") (if isClosed then given.allowedHosts else [ ]);
      limited = map (pairOf "*") profile.networkAllowlist;
      hasProxy = hosts ++ limited ++ given.secrets != [ ];

      image = import ./image.nix {
        inherit hasProxy pkgs profile;
        inherit (given) agent;
        home = import ./home.nix {
          inherit lib;
          subagents = lib.mapAttrs (name: config: mcpServers.${name}.subagent // { inherit config; }) (
            lib.filterAttrs (name: _: scopeOf name == "subagent") configs
          );
          servers = lib.filterAttrs (name: _: scopeOf name == "main") configs;
        };
      };

      mounts = map (mount: mount // { dest = inContainer mount.dest; }) profile.mounts;
      places = map (mount: mount.dest) mounts;
      repeated = lib.filter (place: lib.count (other: other == place) places > 1) places;

      package = import ./launcher.nix {
        inherit
          hosts
          image
          limited
          network
          pkgs
          ;
        proxy = if hasProxy then import ./proxy { inherit pkgs; } else null;
        secrets = map (
          secret: secret // { target = pairOf "443" secret.host; }
        ) given.secrets;
        mounts = lib.throwIf (repeated != [ ]) (
          "mkSandbox: `mounts` has ${lib.head repeated} more than once. Each `dest` can have one `source`."
        ) mounts;
        inherit (given)
          cpus
          memoryMb
          podmanArgs
          protect
          worktree
          ;
      };
    in
    # With `nix develop` the command is on the PATH, and in a list of packages it is a package.
    pkgs.runCommand package.name {
      nativeBuildInputs = [ package ];
      passthru = { inherit image package profile; };
      meta.mainProgram = package.name;
    } "ln -s ${package} $out";
}
