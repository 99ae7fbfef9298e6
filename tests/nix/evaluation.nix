# What evaluates, and what does not: each public function, and each of its errors.
#
# `errors` has calls that fail, each with its message; tests/nix/test_flake.py compares that with what
# Nix prints.
#
# `before` is the package set, had it version 1 of the MCP SDK.
{
  before,
  pkgs,
  self,
}:

let
  inherit (pkgs) lib;
  inherit (self.lib) mkLib;
  inherit (mkLib pkgs) mcpConfig mcpServers;
  inherit (mcpServers.tmux-debug) mkServerConfig package;
  command = "${package}/bin/tmux-debug-mcp";
  wrapix = import ./wrapix.nix { pkgs = pkgs.extend self.overlays.default; };
  sandbox = import ./sandbox.nix { inherit pkgs self; };

  # The version of a package's dependency.
  versionOf =
    pname: package:
    (lib.head (lib.filter (input: input.pname or null == pname) package.propagatedBuildInputs)).version;
  hasSdk = lib.versionAtLeast pkgs.python3.pkgs.mcp.version "2.2";

  # The table of options in docs/reference.md has a row for each, with flag, variable and Nix option.
  variables = lib.listToAttrs (
    lib.concatMap (
      line:
      let
        row = builtins.match "\\| `--[^`]+` \\| `([A-Z_]+)` \\| `([a-zA-Z]+)` \\|.*" line;
      in
      lib.optional (row != null) (lib.nameValuePair (lib.elemAt row 1) (lib.head row))
    ) (lib.splitString "\n" (builtins.readFile ../../docs/reference.md))
  );

  # Those of which not every string is a value have an example.
  valueOf = name: variable: mcpServers.tmux-debug.options.${name}.example or "for ${variable}";

  # The wheels of ours that a package is made of.
  wheelsOf =
    package:
    lib.concatMap (wheel: [ wheel ] ++ wheelsOf wheel) (
      lib.filter (input: input ? requires) package.propagatedBuildInputs
    );
  # What a wheel requires and does not get.
  unmet =
    wheel:
    map (name: "${wheel.pname} requires ${name} ${wheel.requires.${name}}, and gets ${versionOf name wheel}") (
      lib.filter (name: lib.versionOlder (versionOf name wheel) wheel.requires.${name}) (
        lib.subtractLists wheel.relaxed (lib.attrNames wheel.requires)
      )
    );

  tests = {
    testRegistryHasTheServer = {
      expr = lib.attrNames mcpServers;
      expected = [ "tmux-debug" ];
    };
    testDefinitionIsThatOfARegistry = {
      expr = {
        attributes = lib.attrNames mcpServers.tmux-debug;
        inherit (mcpServers.tmux-debug) name packages;
      };
      expected = {
        attributes = [
          "mkServerConfig"
          "name"
          "options"
          "package"
          "packages"
          "subagent"
        ];
        name = "tmux-debug";
        packages = [
          package
          pkgs.tmux
        ];
      };
    };
    testDefinitionHasThePackageOfTheOverlaysWhereThereIsOne = {
      expr =
        (mkLib (pkgs.extend (_: _: { tmux-debug-mcp = pkgs.tmux; }))).mcpServers.tmux-debug.packages;
      expected = [
        pkgs.tmux
        pkgs.tmux
      ];
    };

    testServerConfigWithoutOptions = {
      expr = mkServerConfig { };
      expected = {
        inherit command;
        env = { };
      };
    };
    testServerConfigWithoutValues = {
      expr = mkServerConfig {
        audit = null;
        tmux = null;
      };
      expected = mkServerConfig { };
    };
    testReferenceHasATableOfOptions = {
      expr = variables ? audit;
      expected = true;
    };
    testServerConfigHasTheOptionsOfTheReference = {
      expr =
        (mkServerConfig (lib.mapAttrs valueOf variables // { allowKill = true; })).env;
      expected = lib.mapAttrs' (name: variable: lib.nameValuePair variable (valueOf name variable)) variables // {
        TMUX_DEBUG_ALLOW_KILL = "1";
      };
    };
    testServerConfigOfASwitchThatIsOff = {
      expr = (mkServerConfig { allowKill = false; }).env;
      expected.TMUX_DEBUG_ALLOW_KILL = "";
    };

    testConfigOfNoServers = {
      expr = mcpConfig { };
      expected.mcpServers = { };
    };
    testConfigOfTheServer = {
      expr = mcpConfig { tmux-debug.audit = "/workspace/.debug-audit.log"; };
      expected.mcpServers.tmux-debug = {
        type = "stdio";
        args = [ ];
        inherit command;
        env.TMUX_DEBUG_AUDIT = "/workspace/.debug-audit.log";
      };
    };

    testLibraryOfTheSystemIsThatOfThePackageSet = {
      expr = self.legacyPackages.${pkgs.stdenv.hostPlatform.system}.lib.mcpConfig { tmux-debug = { }; };
      expected = mcpConfig { tmux-debug = { }; };
    };
    testOverlayAddsThePackage = {
      expr = (pkgs.extend self.overlays.default).tmux-debug-mcp.drvPath;
      expected = package.drvPath;
    };

    testSdkIsThatOfThePackageSetWhereItIsVersion2 = {
      expr = versionOf "mcp" package;
      expected = if hasSdk then pkgs.python3.pkgs.mcp.version else "2.2.0";
    };
    testSdkOfVersion1IsReplacedForThePackageAlone = {
      expr = [
        (versionOf "mcp" (mkLib before).mcpServers.tmux-debug.package)
        before.python3.pkgs.mcp.version
      ];
      expected = [
        "2.2.0"
        "1.30.0"
      ];
    };

    testWheelsGetWhatTheyRequire = {
      expr = lib.concatMap unmet (wheelsOf package ++ wheelsOf (mkLib before).mcpServers.tmux-debug.package);
      expected = [ ];
    };
    testThereAreWheelsWhereTheSdkIsOld = {
      expr = lib.sort lib.lessThan (map (wheel: wheel.pname) (wheelsOf (mkLib before).mcpServers.tmux-debug.package));
      expected = [
        "httpcore2"
        "httpx2"
        "mcp"
        "mcp-types"
      ];
    };
    testDefinitionOfThePackageAtHandHasIt = {
      expr =
        let
          other = package.overridePythonAttrs (_: { doCheck = false; });
        in
        (other.mcpServer { inherit pkgs; }).package.drvPath == other.drvPath;
      expected = true;
    };
    testEachOptionIsDocumented = {
      expr = lib.filter (name: !(mcpServers.tmux-debug.options.${name} ? description)) (lib.attrNames variables);
      expected = [ ];
    };

    testRegistryLikeThatOfWrapixHasAllServersWithoutOptions = {
      expr = wrapix.runtimeServers;
      expected.tmux-debug = mkServerConfig { };
    };
    testRegistryLikeThatOfWrapix = {
      expr = wrapix.sandbox {
        tmux-debug = {
          audit = "/workspace/.debug-audit.log";
          auditFull = null;
        };
      };
      expected = {
        inherit (mcpServers.tmux-debug) packages;
        mcpServers.tmux-debug = {
          inherit command;
          env.TMUX_DEBUG_AUDIT = "/workspace/.debug-audit.log";
        };
      };
    };
  }
  // sandbox.tests;

  noOption = name: "The option `${name}' does not exist. Definition values: - In `";
  noValue = name: type: "A definition for option `${name}' is not of type `${type}'.";
  inServerConfigs = problem: "tmux-debug.mkServerConfig: the argument is ${problem}, but it should be a set of options.";
  inMkLib =
    problem:
    "mkLib: the argument is ${problem},"
    + " but it should be a package set, such as nixpkgs.legacyPackages.x86_64-linux.";

  # Calls that are errors, each with what it says.
  errors = {
    mcpConfigOfAnUnknownServer = {
      call = mcpConfig { tmux-debgu = { }; };
      message = noOption "tmux-debgu" + "mcpConfig'";
    };
    mcpConfigOfNoSet = {
      call = mcpConfig [ "tmux-debug" ];
      message = "mcpConfig: the argument is of type list, but it should be a set of options.";
    };
    mcpConfigOfAnUnknownOption = {
      call = mcpConfig { tmux-debug.audti = "audit.log"; };
      message = noOption "tmux-debug.audti" + "mcpConfig'";
    };
    mcpConfigOfAServerThatIsTrue = {
      call = mcpConfig { tmux-debug = true; };
      message = noValue "tmux-debug" "null or options, such as { keep = \"1h\"; }";
    };
    mkServerConfigOfNoSet = {
      call = mkServerConfig "audit.log";
      message = inServerConfigs "of type string";
    };
    mkServerConfigOfThePackage = {
      call = mkServerConfig package;
      message = inServerConfigs "a derivation";
    };
    mkServerConfigOfAPath = {
      call = mkServerConfig { audit = /audit.log; };
      message = noValue "audit" "null or string";
    };
    mkServerConfigOfANumber = {
      call = mkServerConfig { logDir = 1; };
      message = noValue "logDir" "null or string" + " Definition values: - In `tmux-debug.mkServerConfig': 1";
    };
    mkServerConfigOfASwitchThatIsNone = {
      call = mkServerConfig { allowKill = "yes"; };
      message = noValue "allowKill" "null or boolean";
    };
    mkServerConfigOfAPackage = {
      call = mkServerConfig { tmux = pkgs.tmux; };
      message = noValue "tmux" "null or string";
    };
    mkServerConfigOfAList = {
      call = mkServerConfig {
        audit = "audit.log";
        dropEnv = [ "A" ];
      };
      message = noValue "dropEnv" "null or string";
    };
    mkServerConfigOfAnUnknownToolset = {
      call = mkServerConfig { toolsets = "debgu"; };
      message = noValue "toolsets" "null or one or more of debug, tabs, terminal, tmux, separated by commas, but not debug with tmux";
    };
    mkServerConfigOfAToolsetBesides = {
      call = mkServerConfig { toolsets = "debug,tumx"; };
      message = noValue "toolsets" "null or one or more of debug, tabs, terminal, tmux, separated by commas, but not debug with tmux";
    };
    mkServerConfigOfToolsetsWithTheSameTools = {
      call = mkServerConfig { toolsets = "tmux, debug"; };
      message = noValue "toolsets" "null or one or more of debug, tabs, terminal, tmux, separated by commas, but not debug with tmux";
    };
    mkServerConfigOfATimeOfAnUnknownUnit = {
      call = mkServerConfig { keep = "60w"; };
      message = noValue "keep" "null or a time such as 90s, 60m, 2h or 1d, of at most 30d";
    };
    mkServerConfigOfASizeThatIsNone = {
      call = mkServerConfig { size = "120"; };
      message = noValue "size" "null or columns and rows, such as 120x40, of at most 500x200";
    };
    mkServerConfigOfVariablesThatAreNone = {
      call = mkServerConfig { env = "PORT"; };
      message = noValue "env" "null or NAME=VALUE words, quoted as in a shell";
    };
    mkServerConfigOfASocketThatIsNone = {
      call = mkServerConfig { socket = "mine"; };
      message = noValue "socket" "null or default, or a path with a /";
    };
    mkServerConfigOfAWhoThatIsNone = {
      call = mkServerConfig { secrets = "people"; };
      message = noValue "secrets" "null or one of \"anyone\", \"person\"";
    };
    mkLibOfAnotherSet = {
      call = mkLib { inherit pkgs; };
      message = inMkLib "a set without `callPackage` and `lib`";
    };
    mkLibOfNoPackageSet = {
      call = mkLib pkgs.stdenv.hostPlatform.system;
      message = inMkLib "of type string";
    };
    registryLikeThatOfWrapixOfAnUnknownServer = {
      call = wrapix.sandbox { playwright = { }; };
      message = "Unknown MCP server: playwright";
    };
  }
  // sandbox.errors;

  failed =
    lib.runTests tests
    ++ lib.filter (name: (builtins.tryEval (builtins.deepSeq errors.${name}.call null)).success) (
      lib.attrNames errors
    );
in
pkgs.runCommand "tmux-debug-mcp-evaluation"
  {
    passthru = { inherit errors; };
    count = lib.length failed;
    failed = builtins.unsafeDiscardStringContext (builtins.toJSON failed);
  }
  ''
    ((count == 0)) || { echo "not as expected: $failed" >&2; exit 1; }
    echo "${toString (lib.length (lib.attrNames tests))} calls give what they should, and ${
      toString (lib.length (lib.attrNames errors))
    } fail as they should" | tee $out
  ''
