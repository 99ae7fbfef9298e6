# What evaluates of sandboxes, and what does not: `tests` and `errors` of evaluation.nix.
{ pkgs, self }:

let
  inherit (pkgs) lib;
  inherit (self.lib.mkLib pkgs) mcpServers mkSandbox profiles;
  inherit (mcpServers.tmux-debug) subagent;

  homeOf =
    {
      subagents ? { },
      servers ? { },
    }:
    import ../../lib/sandbox/home.nix { inherit lib servers subagents; };
  config = {
    type = "stdio";
    command = "/bin/tmux-debug-mcp";
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

  # docs/sandbox.md has a table with a row for each parameter.
  parameters = lib.concatMap (
    line:
    let
      row = builtins.match "\\| `([a-zA-Z]+)` \\| .*" line;
    in
    lib.optional (row != null) (lib.head row)
  ) (lib.splitString "\n" (builtins.readFile ../../docs/sandbox.md));
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
      expected = {
        name = "own";
        packages = [ ];
        env = { };
        mounts = [ ];
        networkAllowlist = [ ];
      };
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
      expected.".claude/agents/tmux-debug.md" = ''
        ---
        name: tmux-debug
        description: ${builtins.toJSON subagent.description}
        tools: Bash, Read, Grep, Glob
        mcpServers:
          - tmux-debug: {"command":"/bin/tmux-debug-mcp","type":"stdio"}
        ---
        ${subagent.prompt config}'';
    };
    testMainSessionHasTheServer = {
      expr = homeOf { servers.tmux-debug = config; };
      expected.".claude.json" = builtins.toJSON { mcpServers.tmux-debug = config; };
    };
    testWithoutServersThereAreNoFilesForTheClient = {
      expr = homeOf { };
      expected = { };
    };
    testPromptIsForTheToolsets = {
      expr = map (toolsets: subagent.prompt { env.TMUX_DEBUG_TOOLSETS = toolsets; }) [
        ""
        "terminal, debug"
        "tmux"
      ];
      expected = map builtins.readFile [
        ../../lib/mcp/tmux/subagent.md
        ../../lib/mcp/tmux/subagent.md
        ../../lib/mcp/tmux/subagent-other.md
      ];
    };
    testPromptIsShort = {
      expr = builtins.stringLength (subagent.prompt { }) <= 1500;
      expected = true;
    };
  };

  errors =
    let
      failing = arguments: problem: {
        call = (mkSandbox arguments).drvPath;
        message = "mkSandbox: ${problem}";
      };
      withMount =
        mount:
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
        };
      path = "a string with a path that starts with / or ~";
      key = {
        host = "api.example.com";
        variable = "API_KEY";
        header = "x-api-key";
        urlVariable = "API_URL";
      };
      parameter = "a set with an attribute for each parameter";
      known = lib.concatStringsSep ", " (builtins.sort builtins.lessThan parameters);
    in
    {
      sandboxOfNoSet = failing [ ] "the argument is of type list, but it should be ${parameter}.";
      sandboxWithAnUnknownParameter = failing {
        profil = profiles.rust;
      } "Unknown parameter: profil. Known: ${known}.";

      sandboxWithADeployKey = failing {
        deployKey = "project";
      } "`deployKey` is refused: this sandbox knows no keys. Mount one with `mounts`.";
      sandboxWithAModel = failing {
        model = "large";
      } "`model` is refused: the agent chooses its model.";
      sandboxWithServersChosenLater = failing {
        mcpRuntime = true;
      } "`mcpRuntime` is refused: the servers are chosen when the image is built.";
      sandboxWithOneHost = failing {
        allowedHosts = "api.example.com";
      } "`allowedHosts` is of type string (\"api.example.com\"), but it should be a list.";
      sandboxWithAnAddress =
        failing { allowedHosts = [ "10.0.0.1:443" ]; }
          "`allowedHosts.0` is of type string (\"10.0.0.1:443\"), but it should be a host's name in lower case";
      sandboxWithAnUrl =
        failing { allowedHosts = [ "https://api.example.com/" ]; }
          "`allowedHosts.0` is of type string (\"https://api.example.com/\"), but it should be a host's name";
      sandboxWithAllHosts =
        failing { allowedHosts = [ "*" ]; }
          "`allowedHosts.0` is of type string (\"*\"), but it should be a host's name in lower case";
      sandboxWithAPortThatIsNone =
        failing { allowedHosts = [ "api.example.com:65536" ]; }
          "`allowedHosts.0` is of type string (\"api.example.com:65536\"), but it should be a host's name";
      sandboxWithHostsAndANetwork = failing {
        allowedHosts = [ ];
        network = "host";
      } "`network` is \"host\", but with `allowedHosts` there is none. Leave one of them out.";
      sandboxWithAPortForWrapix =
        failing { networkAllowlist = [ "api.example.com:443" ]; }
          "`networkAllowlist.0` is of type string (\"api.example.com:443\"), but it should be a host's name";
      sandboxOfAProfileWithAPortForWrapix = failing {
        profile = profiles.base // {
          networkAllowlist = [ "api.example.com:443" ];
        };
      } "`profile.networkAllowlist.0` is of type string (\"api.example.com:443\"), but it should be";
      sandboxWithAKeyAndANetwork = failing {
        secrets = [ key ];
      } "`secrets` need a closed network: set `allowedHosts`, to [ ] where no other host is needed.";
      sandboxWithAKeyWithoutAHost = failing {
        secrets = [ (removeAttrs key [ "host" ]) ];
      } "`secrets.0.host` is missing.";
      sandboxWithAKeyForManyHosts = failing {
        secrets = [ (key // { host = "*.example.com"; }) ];
      } "`secrets.0.host` is of type string (\"*.example.com\"), but it should be a host's name in lower";
      sandboxWithAKeyInTheConfiguration = failing {
        secrets = [ (key // { variable = "sk-1"; }) ];
      } "`secrets.0.variable` is of type string (\"sk-1\"), but it should be the name of a variable.";
      sandboxWithAHeaderOfTwoLines = failing {
        secrets = [ (key // { prefix = "a\nb"; }) ];
      } "`secrets.0.prefix` is of type string (\"a\\nb\"), but it should be a string of letters, digits and";
      sandboxThatProtectsWhatIsOutside = failing {
        protect = [ "../x" ];
      } "`protect.0` is of type string (\"../x\"), but it should be a path in the project without `..`";
      sandboxThatProtectsAnyDirectory = failing {
        protect = [ "*/hooks" ];
      } "`protect.0` is of type string (\"*/hooks\"), but it should be a path in the project without `..`";
      sandboxThatProtectsAnAbsolutePath = failing {
        protect = [ "/etc" ];
      } "`protect.0` is of type string (\"/etc\"), but it should be a path in the project without `..`";
      sandboxOfAWorktreeByItsName = failing {
        worktree = "main";
      } "`worktree` is of type string (\"main\"), but it should be true or false.";

      sandboxOfAProfileByItsName =
        failing { profile = "rust"; }
          "`profile` is of type string (\"rust\"), but it should be a set with an attribute for each part.";
      sandboxOfAProfileWithoutAName = failing {
        profile.packages = [ ];
      } "`profile.name` is missing.";
      sandboxOfAProfileWithANameThatNoImageHas =
        failing { profile.name = "My Profile"; }
          "`profile.name` is of type string (\"My Profile\"), but it should be a string of lower-case";

      sandboxWithAnUnknownServer = failing {
        mcp.tmux-debgu = { };
      } "Unknown MCP server in `mcp`: tmux-debgu. Known: tmux-debug.";
      sandboxWithAnUnknownOption = failing {
        mcp.tmux-debug.scop = "main";
      } "Unknown option in `mcp.tmux-debug`: scop. Known: ${
        lib.concatStringsSep ", " (builtins.sort builtins.lessThan (mcpServers.tmux-debug.options ++ [ "scope" ]))
      }.";
      sandboxWithAnUnknownScope =
        failing { mcp.tmux-debug.scope = "agent"; }
          "`mcp.tmux-debug.scope` is of type string (\"agent\"), but it should be \"subagent\" or \"main\".";
      sandboxWithAnOptionOfAnotherType = {
        call = (mkSandbox { mcp.tmux-debug.audit = 1; }).drvPath;
        message =
          "tmux-debug.mkServerConfig: `audit` is of type int (1),"
          + " but it should be a string, or null for none.";
      };

      sandboxWithANumberInItsEnvironment = failing {
        env.PORT = 80;
      } "`env.PORT` is of type int (80), but it should be a string.";
      sandboxWithAVariableThatIsNone = failing {
        env."A=B" = "C";
      } "`env.A=B` is no variable: these have names of letters, digits and _.";
      sandboxWithAPackageByItsName = failing {
        packages = [ "git" ];
      } "`packages.0` is of type string (\"git\"), but it should be a package.";
      sandboxWithAnAgentByItsName = failing {
        agent = "claude";
      } "`agent` is of type string (\"claude\"), but it should be a package, whose main program is";
      sandboxWithNoMemory =
        failing { memoryMb = 0; }
          "`memoryMb` is of type int (0), but it should be a whole number above 0, or null for no limit.";
      sandboxWithProcessorsInAString = failing {
        cpus = "2";
      } "`cpus` is of type string (\"2\"), but it should be a number above 0, or null for no limit.";
      sandboxWithNetworks = failing {
        network = [ "none" ];
      } "`network` is of type list, but it should be a string for podman's --network";
      sandboxWithArgumentsInAString = failing {
        podmanArgs = "--tty";
      } "`podmanArgs` is of type string (\"--tty\"), but it should be a list.";

      sandboxWithAMountWithoutASource = failing {
        mounts = [ { dest = "/data"; } ];
      } "`mounts.0.source` is missing.";
      sandboxWithAMountOfAPathOfNix = withMount {
        source = /data;
      } "`mounts.0.source` is of type path (/data), but it should be ${path}.";
      sandboxWithAMountInAnotherMode = withMount {
        mode = "rwx";
      } "`mounts.0.mode` is of type string (\"rwx\"), but it should be \"ro\" or \"rw\".";
      sandboxWithAMountOverTheProject =
        withMount { dest = "/workspace/"; }
          "`mounts.0.dest` is of type string (\"/workspace/\"), but it should be another place than / and";
      sandboxWithAMountOverEverything = withMount {
        dest = "/";
      } "`mounts.0.dest` is of type string (\"/\"), but it should be another place than / and /workspace.";
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
      } "`mounts` has /home/sandbox/data more than once. Each `dest` can have one `source`.";
    };
}
