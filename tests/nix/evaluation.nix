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
        (mkServerConfig (lib.mapAttrs (_: variable: "for ${variable}") variables // { allowKill = true; }))
        .env;
      expected = lib.mapAttrs' (_: variable: lib.nameValuePair variable "for ${variable}") variables // {
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

  inServerConfig = problem: "tmux-debug.mkServerConfig: ${problem}";
  inServerConfigs =
    problem: inServerConfig "${problem}, but it should be a set with an attribute for each option.";
  inOption = problem: inServerConfig "${problem}, but it should be a string, or null for none.";
  inMkLib =
    problem:
    "mkLib: the argument is ${problem},"
    + " but it should be a package set, such as nixpkgs.legacyPackages.x86_64-linux.";
  known = "Known: ${lib.concatStringsSep ", " (lib.attrNames variables)}.";

  # Calls that are errors, each with what it says.
  errors = {
    mcpConfigOfAnUnknownServer = {
      call = mcpConfig { tmux-debgu = { }; };
      message = "mcpConfig: Unknown MCP server: tmux-debgu. Known: tmux-debug.";
    };
    mcpConfigOfNoSet = {
      call = mcpConfig [ "tmux-debug" ];
      message =
        "mcpConfig: the argument is of type list,"
        + " but it should be a set with an attribute for each MCP server.";
    };
    mcpConfigOfAnUnknownOption = {
      call = mcpConfig { tmux-debug.audti = "audit.log"; };
      message = inServerConfig "Unknown option: audti. ${known}";
    };
    mkServerConfigOfUnknownOptions = {
      call = mkServerConfig {
        audti = null;
        logdir = "logs";
      };
      message = inServerConfig "Unknown option: audti, logdir. ${known}";
    };
    mkServerConfigOfManyUnknownOptions = {
      call = mkServerConfig {
        a = 1;
        b = 2;
        c = 3;
        d = 4;
        e = 5;
      };
      message = inServerConfig "Unknown option: a, b, c and 2 more. ${known}";
    };
    mkServerConfigOfNoSet = {
      call = mkServerConfig "audit.log";
      message = inServerConfigs "the argument is of type string (\"audit.log\")";
    };
    mkServerConfigOfThePackage = {
      call = mkServerConfig package;
      message = inServerConfigs "the argument is a derivation";
    };
    mkServerConfigOfAPath = {
      call = mkServerConfig { audit = /audit.log; };
      message = inOption "`audit` is of type path (/audit.log)";
    };
    mkServerConfigOfANumber = {
      call = mkServerConfig { logDir = 1; };
      message = inOption "`logDir` is of type int (1)";
    };
    mkServerConfigOfASwitchThatIsNone = {
      call = mkServerConfig { allowKill = "yes"; };
      message = inServerConfig "`allowKill` is of type string (\"yes\"), but it should be a boolean, or null for false.";
    };
    mkServerConfigOfAPackage = {
      call = mkServerConfig { tmux = pkgs.tmux; };
      message = inOption "`tmux` is a derivation";
    };
    mkServerConfigOfWhatHasNoEnd = {
      call = mkServerConfig { tmux = pkgs; };
      message = inOption "`tmux` is of type set";
    };
    mkServerConfigOfAList = {
      call = mkServerConfig {
        audit = "audit.log";
        dropEnv = [ "A" ];
      };
      message = inOption "`dropEnv` is of type list";
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
