# What evaluates of sandboxes, and what does not: `tests` and `errors` of evaluation.nix.
{ pkgs, self }:

let
  inherit (pkgs) lib;
  inherit (self.lib.mkLib pkgs)
    mcpServers
    mkSandbox
    profiles
    sandboxOptions
    ;
  inherit (mcpServers.tmux-debug) subagent;

  homeOf =
    {
      subagents ? { },
      servers ? { },
      enabledPlugins ? { },
    }:
    import ../../lib/sandbox/home.nix {
      inherit
        enabledPlugins
        lib
        servers
        subagents
        ;
    };
  # What a client has asked on the host.
  answered = {
    hasCompletedOnboarding = true;
    projects."/workspace".hasTrustDialogAccepted = true;
  };
  config = {
    type = "stdio";
    command = "/bin/tmux-debug-mcp";
  };
  kept = config // {
    env.TMUX_DEBUG_KEEP = "30m";
  };

  settings = {
    source = "~/.gitconfig";
    dest = "~/.gitconfig";
    mode = "ro";
    optional = true;
  };
  sandbox = mkSandbox {
    profile = profiles.rust;
    mcp.tmux-debug = {
      scope = "main";
      audit = "/workspace/.debug-audit.log";
    };
    packages = [ pkgs.dash ];
    env = {
      PORT = "80";
      RUST_BACKTRACE = "0";
    };
    mounts = [ settings ];
    agent = pkgs.busybox;
    cpus = 1.5;
    memoryMb = 512;
    network = "none";
    networkAllowlist = [ "example.com" ];
    podmanArgs = [ "--hostname=sandbox" ];
  };

  # A profile as wrapix makes them.
  wrapix = {
    name = "rust";
    packages = [ pkgs.dash ];
    env.CARGO_HOME = "/home/wrapix/.cargo";
    mounts = [
      {
        source = "~/.cargo/registry";
        dest = "/home/wrapix/.cargo/registry";
        mode = "rw";
        optional = true;
      }
    ];
    networkAllowlist = [ "crates.io" ];
    enabledPlugins."rust-analyzer-lsp@claude-plugins-official" = true;
    shellHook = "export CARGO_INCREMENTAL=0";
    writableDirs = [ "/home/wrapix/.cargo" ];
    toolchain = pkgs.dash;
    withToolchain = _: { };
  };

  # docs/sandbox/parameters.md has a table with a row for each parameter.
  parameters = lib.concatMap (
    line:
    let
      row = builtins.match "\\| `([a-zA-Z]+)` \\| .*" line;
    in
    lib.optional (row != null) (lib.head row)
  ) (lib.splitString "\n" (builtins.readFile ../../docs/sandbox/parameters.md));
in
{
  tests = {
    testProfiles = {
      expr = lib.attrNames profiles;
      expected = [
        "base"
        "python"
        "rust"
      ];
    };
    testSandboxIsAPackageWithItsParts = {
      expr = [
        (lib.isDerivation sandbox)
        (lib.isDerivation sandbox.package)
        (lib.isDerivation sandbox.image)
        sandbox.meta.mainProgram
        sandbox.image.imageName
      ];
      expected = [
        true
        true
        true
        sandbox.package.meta.mainProgram
        "tmux-debug-sandbox-rust"
      ];
    };
    testSandboxWithoutArguments = {
      expr = (mkSandbox { }).profile;
      expected = profiles.base;
    };
    testSandboxAddsToItsProfile = {
      expr = sandbox.profile;
      expected = {
        name = "rust";
        packages = [
          pkgs.dash
        ]
        ++ profiles.rust.packages
        ++ mcpServers.tmux-debug.packages
        ++ [ pkgs.busybox ];
        env = profiles.rust.env // {
          PORT = "80";
          RUST_BACKTRACE = "0";
        };
        mounts = [ settings ];
        enabledPlugins = { };
        shellHook = "";
        writableDirs = [ ];
        networkAllowlist = [
          "crates.io"
          "index.crates.io"
          "static.crates.io"
          "example.com"
        ];
      };
    };
    testProfileOfOnesOwnNeedsANameOnly = {
      expr = (mkSandbox { profile.name = "own"; }).profile;
      expected = profiles.base // {
        name = "own";
        packages = [ ];
        env = { };
      };
    };
    testProfileOfWrapixIsTakenAsItIs = {
      expr = (mkSandbox { profile = wrapix; }).profile;
      expected = removeAttrs wrapix [
        "toolchain"
        "withToolchain"
      ];
    };
    testShellOfASandboxRunsTheHookOfItsProfile = {
      expr = (mkSandbox { profile = wrapix; }).shellHook;
      expected = "export CARGO_INCREMENTAL=0";
    };
    testPluginsOfAProfileAreSettingsOfTheClient = {
      expr = (homeOf { inherit (wrapix) enabledPlugins; })."etc/skel/.claude/settings.json";
      expected = builtins.toJSON { inherit (wrapix) enabledPlugins; };
    };
    testWhoCommitsIsInTheEnvironment = {
      expr =
        (mkSandbox {
          git = {
            name = "A. Developer";
            email = "a@example.com";
          };
        }).profile.env;
      expected = profiles.base.env // {
        GIT_AUTHOR_NAME = "A. Developer";
        GIT_AUTHOR_EMAIL = "a@example.com";
        GIT_COMMITTER_NAME = "A. Developer";
        GIT_COMMITTER_EMAIL = "a@example.com";
      };
    };
    testSandboxesOfTwoNamesAreTwoCommands = {
      expr = map (name: (mkSandbox { inherit name; }).meta.mainProgram) [
        "one"
        "two"
      ];
      expected = [
        "one"
        "two"
      ];
    };
    testParametersOfWrapixThatAskForNothingAreTaken = {
      expr =
        (mkSandbox {
          deployKey = null;
          mcpRuntime = false;
          model = null;
        }).profile;
      expected = profiles.base;
    };
    testVariablesOfServersAreForAllThatIsStartedInside = {
      expr =
        (mkSandbox { mcp.tmux-debug.audit = "/a"; }).image.drvPath
        == (mkSandbox { mcp.tmux-debug.audit = "/b"; }).image.drvPath;
      expected = false;
    };
    testAgentsHaveTheServersOfTheMainSession = {
      expr =
        let
          files = import ../../lib/sandbox/agents.nix {
            inherit lib;
            servers.tmux-debug = config // {
              args = [ ];
              env.TMUX_DEBUG_AUDIT = "/a \"b\"";
            };
          };
        in
        [
          files."etc/codex/managed_config.toml"
          (builtins.fromJSON files."etc/gemini-cli/settings.json").mcpServers
          (builtins.fromJSON files."etc/opencode/opencode.json").mcp
        ];
      expected = [
        ''
          [features]
          daemon_auto_start = false
          [projects."/workspace"]
          trust_level = "trusted"
          [mcp_servers.tmux-debug]
          command = "/bin/tmux-debug-mcp"
          args = []
          env = { TMUX_DEBUG_AUDIT = "/a \"b\"" }
        ''
        {
          tmux-debug = {
            args = [ ];
            command = "/bin/tmux-debug-mcp";
            env.TMUX_DEBUG_AUDIT = "/a \"b\"";
          };
        }
        {
          tmux-debug = {
            type = "local";
            command = [ "/bin/tmux-debug-mcp" ];
            environment.TMUX_DEBUG_AUDIT = "/a \"b\"";
          };
        }
      ];
    };
    testListOfAProfileBringsAProxyWhereItIsAskedFor = {
      expr =
        (mkSandbox { profile = profiles.rust; }).drvPath == (mkSandbox {
          profile = profiles.rust;
          networkAllowlist = [ ];
        }).drvPath;
      expected = false;
    };
    testListOfParametersIsThatOfThePage = {
      expr = lib.filter (name: sandboxOptions.${name}.visible or true) (lib.attrNames sandboxOptions);
      expected = lib.sort lib.lessThan parameters;
    };
    testEachParameterIsDocumented = {
      expr = lib.filter (
        name: name != "mcp" && !(sandboxOptions.${name} ? description) && sandboxOptions.${name}.visible or true
      ) (lib.attrNames sandboxOptions);
      expected = [ ];
    };
    testSandboxOfTheDocumentation = {
      expr =
        (mkSandbox { profile = profiles.rust; mcp.tmux-debug = { }; agent = pkgs.claude-code; })
        .profile.name;
      expected = "rust";
    };
    testImagesOfDifferentContentsHaveDifferentTags = {
      expr =
        (mkSandbox { mcp.tmux-debug = { }; }).image.imageTag
        == (mkSandbox { mcp.tmux-debug.scope = "main"; }).image.imageTag;
      expected = false;
    };

    testSubagentAloneHasTheServer = {
      expr = homeOf { subagents.tmux-debug = subagent // { inherit config; }; };
      expected."etc/skel/.claude.json" = builtins.toJSON answered;
      expected."etc/skel/.claude/agents/tmux-debug.md" = ''
        ---
        name: tmux-debug
        description: ${builtins.toJSON (subagent.description kept)}
        tools: Bash, Read, Grep, Glob
        mcpServers:
          - tmux-debug: {"command":"/bin/tmux-debug-mcp","env":{"TMUX_DEBUG_KEEP":"30m"},"type":"stdio"}
        ---
        ${subagent.prompt kept}'';
    };
    testWhatEndsWhenIsSaid = {
      expr =
        let
          says = words: text: lib.length (lib.splitString words text) == 2;
        in
        map (told: [
          (says "ends with it." (subagent.description told))
          (says "ends with you" (subagent.prompt told))
          (says "ends 30m" (subagent.prompt told))
        ]) [ config kept ];
      expected = [ [ true true false ] [ false false true ] ];
    };
    testMainSessionHasTheServer = {
      expr = homeOf { servers.tmux-debug = config; };
      expected."etc/skel/.claude.json" = builtins.toJSON (answered // { mcpServers.tmux-debug = config; });
    };
    testWithoutServersTheClientAsksNothing = {
      expr = homeOf { };
      expected."etc/skel/.claude.json" = builtins.toJSON answered;
    };
    testPromptIsForTheToolsets = {
      expr = lib.mapAttrsToList (
        toolsets: prompt:
        lib.hasPrefix (builtins.readFile prompt) (subagent.prompt { env.TMUX_DEBUG_TOOLSETS = toolsets; })
      ) {
        "" = ../../lib/mcp/tmux/subagent.md;
        "terminal, debug" = ../../lib/mcp/tmux/subagent.md;
        "tmux" = ../../lib/mcp/tmux/subagent-other.md;
      };
      expected = [ true true true ];
    };
    testPromptIsShort = {
      expr = builtins.stringLength (subagent.prompt { }) <= 1500;
      expected = true;
    };
  };

  errors =
    let
      failing = arguments: message: {
        call = (mkSandbox arguments).drvPath;
        inherit message;
      };
      unknown = name: "The option `${name}' does not exist. Definition values: - In `mkSandbox'";
      not = name: type: "A definition for option `${name}' is not of type `${type}'.";
      missing = name: "The option `${name}' was accessed but has no value defined.";
      host = "a host's name in lower case, such as \"api.example.com\" or \"*.example.org\"";
      hostWithPort = "a host's name in lower case, such as \"api.example.com\" or \"*.example.org:443\"";
      path = "a string with a path that starts with / or ~";
      place = "a path that starts with / or ~, where neither the project nor the image has its own files";
      inProject = "a relative path such as \"Makefile\" or \".claude/*.json\", without ./, .., ** or a / at its end";
      withHost = host: failing { allowedHosts = [ host ]; } (not "allowedHosts.\"[definition 1-entry 1]\"" hostWithPort);
      withMount =
        mount: name: type:
        failing {
          mounts = [
            (
              {
                source = "/data";
                dest = "/data";
              }
              // mount
            )
          ];
        } (not "mounts.\"[definition 1-entry 1]\".${name}" type);
      key = {
        host = "api.example.com";
        variable = "API_KEY";
        header = "x-api-key";
        urlVariable = "API_URL";
      };
      withKey =
        change: name: type:
        failing {
          allowedHosts = [ ];
          secrets = [ (key // change) ];
        } (not "secrets.\"[definition 1-entry 1]\".${name}" type);
      protecting = path: failing { protect = [ path ]; } (not "protect.\"[definition 1-entry 1]\"" inProject);
    in
    {
      sandboxOfNoSet = failing [ ] "mkSandbox: the argument is of type list, but it should be a set of options.";
      sandboxWithAnUnknownParameter = failing { profil = profiles.rust; } (unknown "profil");

      sandboxWithADeployKey = failing {
        deployKey = "project";
      } "mkSandbox: `deployKey` is refused: this sandbox handles no keys. Mount one with `mounts`.";
      sandboxWithAModel = failing {
        model = "large";
      } "mkSandbox: `model` is refused: the agent chooses its model.";
      sandboxWithServersChosenLater = failing {
        mcpRuntime = true;
      } "mkSandbox: `mcpRuntime` is refused: the servers are chosen when the image is built.";

      sandboxWithOneHost = failing {
        allowedHosts = "api.example.com";
      } (not "allowedHosts" "null or (list of ${hostWithPort})");
      sandboxWithAnAddress = withHost "10.0.0.1:443";
      sandboxWithAnUrl = withHost "https://api.example.com/";
      sandboxWithAllHosts = withHost "*";
      sandboxWithAPortThatIsNone = withHost "api.example.com:65536";
      sandboxWithHostsAndANetwork =
        failing
          {
            allowedHosts = [ ];
            network = "host";
          }
          "mkSandbox: `network` is \"host\", but with `allowedHosts` there is none. Remove one of them.";
      sandboxWithHostsAndAnArgumentForANetwork = failing {
        allowedHosts = [ ];
        podmanArgs = [ "--network=host" ];
      } "mkSandbox: `podmanArgs` has --network=host, but this sandbox has no network of its own. Remove it.";
      sandboxThatWouldGoOn = failing {
        podmanArgs = [ "-dit" ];
      } "mkSandbox: `podmanArgs` has -dit, which is for the launcher alone. Remove it.";
      sandboxWithoutItsEntrypoint = failing {
        podmanArgs = [ "--entrypoint=bash" ];
      } "mkSandbox: `podmanArgs` has --entrypoint=bash, which is for the launcher alone. Remove it.";
      sandboxWithNixAndHosts = failing {
        allowedHosts = [ ];
        nix = true;
      } "mkSandbox: `nix` needs an open network: the host's daemon fetches whatever it is asked for.";
      sandboxWithAPortForWrapix = failing {
        networkAllowlist = [ "api.example.com:443" ];
      } (not "networkAllowlist.\"[definition 1-entry 1]\"" host);
      sandboxOfAProfileWithAPortForWrapix = failing {
        profile = profiles.base // {
          networkAllowlist = [ "api.example.com:443" ];
        };
      } (not "profile.networkAllowlist.\"[definition 1-entry 1]\"" host);
      sandboxWithAKeyAndANetwork = failing {
        secrets = [ key ];
      } "mkSandbox: `secrets` need a closed network: set `allowedHosts`, to [ ] if no other host is needed.";
      sandboxWithAKeyWithoutAHost = failing {
        allowedHosts = [ ];
        secrets = [ (removeAttrs key [ "host" ]) ];
      } (missing "secrets.\"[definition 1-entry 1]\".host");
      sandboxWithAKeyForManyHosts = withKey {
        host = "*.example.com";
      } "host" "a host's name in lower case, such as \"api.example.com:443\"";
      sandboxWithAKeyInTheConfiguration = withKey { variable = "sk-1"; } "variable" "the name of a variable";
      sandboxWithTwoKeysInOneVariable = failing {
        allowedHosts = [ ];
        secrets = [
          key
          (key // { host = "other.example.com"; })
        ];
      } "mkSandbox: API_KEY stands more than once in `secrets` and `passEnv`. Each variable can have one value.";
      sandboxThatPassesAKeyIn = failing {
        allowedHosts = [ ];
        secrets = [ key ];
        passEnv = [ "API_KEY" ];
      } "mkSandbox: API_KEY stands more than once in `secrets` and `passEnv`.";
      sandboxWithPortsThatAreNone = failing {
        ports = [ "8080:" ];
      } (not "ports.\"[definition 1-entry 1]\"" "a port from 1024 on, such as 8080, or two, such as \"18080:8080\"");
      sandboxWithAPortTwice = failing {
        ports = [
          8080
          "8080:8081"
        ];
      } "mkSandbox: `ports` has 8080 more than once.";
      sandboxWithAPortOfTheProxy = failing {
        allowedHosts = [ "api.example.com" ];
        hostPorts = [ 3128 ];
      } "mkSandbox: port 3128 inside would be for two things: `ports`, `hostPorts`, and from 3128 on the proxy. Choose another one.";
      sandboxWithAPortOfTheHostBelowAll = failing {
        hostPorts = [ 443 ];
      } (not "hostPorts.\"[definition 1-entry 1]\"" "a port from 1024 on, such as 5432");
      sandboxWithAPortInBothDirections = failing {
        ports = [ 5432 ];
        hostPorts = [ 5432 ];
      } "mkSandbox: port 5432 inside would be for two things:";
      sandboxWithAShellOfAnotherSystem = failing {
        inputsFrom = [ (pkgs.mkShell { } // { system = "riscv64-linux"; }) ];
      } "mkSandbox: `inputsFrom` has a shell for riscv64-linux, but this sandbox is for ${pkgs.stdenv.hostPlatform.system}:";
      sandboxWithTheHostsPath = failing {
        passEnv = [ "PATH" ];
      } "mkSandbox: `passEnv` has PATH, which the sandbox sets. Remove it.";
      sandboxWithAHomeOfItsOwn = failing {
        env.HOME = "/workspace";
      } "mkSandbox: `env` has HOME, which the sandbox sets. Remove it.";
      sandboxWithAKeyThatEverybodyReads = failing {
        allowedHosts = [ ];
        secrets = [ key ];
        env.API_KEY = "sk-1";
      } "mkSandbox: API_KEY of `secrets` is also in `env`, which everybody can read. Remove it there.";
      sandboxThatProtectsByTwoStars = protecting "**/Makefile";
      sandboxOfAProfileAlone = failing profiles.rust "mkSandbox: the argument is a profile: mkSandbox { profile = profiles.base; }";
      sandboxWithAMountInAString = failing {
        mounts = [ "/data:/data" ];
      } (not "mounts.\"[definition 1-entry 1]\"" "a set such as { source = \"~/data\"; dest = \"/data\"; }");
      sandboxWithAHeaderOfTwoLines = withKey {
        prefix = "a\nb";
      } "prefix" "a string of letters, digits and blanks";
      sandboxThatProtectsWhatIsOutside = protecting "../x";
      sandboxThatProtectsAnAbsolutePath = protecting "/etc";
      sandboxOfAWorktreeByItsName = failing { worktree = "main"; } (not "worktree" "boolean");
      sandboxWithSessionsOutside = failing {
        sessions = "../sessions";
      } (not "sessions" "null or a relative path such as \".claude/sessions\", without ./, .. or *");
      sandboxWithACommandThatIsNone = failing { name = "My Sandbox"; } (not "name" "a command's name of lower-case letters, digits and inner dashes");
      sandboxOfNobodyWhoCommits = failing { git.name = "A. Developer"; } (missing "git.email");

      sandboxOfAProfileByItsName = failing {
        profile = "rust";
      } "mkSandbox: `profile` is a string. Give the profile itself: profile = profiles.rust;";
      sandboxOfAPackageSet = {
        call = (mkSandbox pkgs).drvPath;
        message = "mkSandbox: the argument is a package set, which is for `mkLib`: (mkLib pkgs).mkSandbox { }";
      };
      sandboxWithAListOfServers = failing {
        mcp = [ "tmux-debug" ];
      } "mkSandbox: `mcp` should be a set with the options of each server: mcp.tmux-debug = { };";
      sandboxWithAServerThatIsTrue = failing {
        mcp.tmux-debug = true;
      } "mkSandbox: `mcp.tmux-debug` should be the server's options: mcp.tmux-debug = { };";
      sandboxOfAProfileWithoutAName = failing { profile.packages = [ ]; } (missing "profile.name");
      sandboxOfAProfileWithANameThatNoImageHas = failing {
        profile.name = "My Profile";
      } (not "profile.name" "a string of lower-case letters, digits and inner dashes");

      sandboxWithAnUnknownServer = failing { mcp.tmux-debgu = { }; } (unknown "mcp.tmux-debgu");
      sandboxWithAnUnknownOption = failing { mcp.tmux-debug.scop = "main"; } (unknown "mcp.tmux-debug.scop");
      sandboxWithAnUnknownScope = failing {
        mcp.tmux-debug.scope = "agent";
      } (not "mcp.tmux-debug.scope" "one of \"subagent\", \"main\"");
      sandboxWithAnOptionOfAnotherType = failing {
        mcp.tmux-debug.audit = 1;
      } (not "mcp.tmux-debug.audit" "null or string");
      sandboxWithAnUnknownToolset = failing {
        mcp.tmux-debug.toolsets = "debgu";
      } (not "mcp.tmux-debug.toolsets" "null or one or more of debug, tabs, terminal, tmux, separated by commas, but not debug with tmux");

      sandboxWithANumberInItsEnvironment = failing { env.PORT = 80; } (not "env.PORT" "string");
      sandboxWithAVariableThatIsNone = failing {
        env."A=B" = "C";
      } "mkSandbox: `env` has \"A=B\", which is no name of a variable.";
      sandboxWithAPackageByItsName = failing {
        packages = [ "git" ];
      } (not "packages.\"[definition 1-entry 1]\"" "package");
      sandboxWithAnAgentByItsName = failing {
        agent = "claude-code";
      } "mkSandbox: `agent` is a string. Give the package: agent = pkgs.claude-code;";
      sandboxWithAnAgentWithoutAProgram = failing {
        agent = pkgs.runCommand "library" { } "mkdir $out";
      } "mkSandbox: `agent` is library, which doesn't say its main program.";
      sandboxWithWhatAnotherAgentDoesNotRead =
        failing
          {
            agent = pkgs.writeShellScriptBin "codex" "";
            mcp.tmux-debug = { };
            sessions = ".sessions";
          }
          "mkSandbox: servers with the scope \"subagent\" (\"main\" is for all agents) and `sessions` are for Claude Code alone, but `agent` is codex.";
      sandboxWithNoMemory = failing { memoryMb = 0; } (not "memoryMb" "null or a whole number from 64 on");
      sandboxWithProcessorsInAString = failing { cpus = "2"; } (not "cpus" "null or a number above 0");
      sandboxWithNetworks = failing { network = [ "none" ]; } (not "network" "null or string");
      sandboxWithArgumentsInAString = failing { podmanArgs = "--tty"; } (not "podmanArgs" "list of string");

      sandboxWithAMountWithoutASource = failing {
        mounts = [ { dest = "/data"; } ];
      } (missing "mounts.\"[definition 1-entry 1]\".source");
      sandboxWithAMountOfAPathOfNix = withMount { source = /data; } "source" path;
      sandboxWithAMountInAnotherMode = withMount { mode = "rwx"; } "mode" "one of \"ro\", \"rw\"";
      sandboxWithAMountOverTheProject = withMount { dest = "/workspace/"; } "dest" place;
      sandboxWithAMountByTwoSlashes = withMount { dest = "/data//x"; } "dest" place;
      sandboxWithAMountAboveItself = withMount { dest = "/data/.."; } "dest" place;
      sandboxWithAMountOverTheProjectByAPoint = withMount { dest = "/workspace/."; } "dest" place;
      sandboxWithAMountOverEverything = withMount { dest = "/"; } "dest" place;
      sandboxWithAMountOverPrograms = withMount { dest = "/bin"; } "dest" place;
      sandboxWithAMountOverSettings = withMount { dest = "/etc/"; } "dest" place;
      sandboxWithAMountInTheStore = withMount { dest = "/nix/store/x"; } "dest" place;
      sandboxWithAMountOverProcesses = withMount { dest = "/proc"; } "dest" place;
      sandboxWithAMountOverSockets = withMount { dest = "/run"; } "dest" place;
      sandboxWithTwoMountsInOnePlace = failing {
        profile = profiles.base // {
          mounts = [
            {
              source = "/one";
              dest = "~/data";
            }
          ];
        };
        mounts = [
          {
            source = "/two";
            dest = "/home/sandbox/data/";
          }
        ];
      } "mkSandbox: `mounts` and `writableDirs` have /home/sandbox/data more than once. Each `dest` can have one `source`.";
    };
}
