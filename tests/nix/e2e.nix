# The end-to-end tests, with the sandboxes that they run.
{ pkgs, self }:

let
  inherit (pkgs) lib;
  inherit (self.lib.mkLib pkgs) mkSandbox profiles;

  sandboxes = lib.mapAttrs (_: mkSandbox) {
    # All that a sandbox can add to a profile.
    full = {
      profile = profiles.rust;
      mcp.tmux-debug = { };
      packages = [
        pkgs.dash
        (pkgs.writeShellScriptBin "which" "echo another which")
      ];
      env.GREETING = "hello from nix";
      mounts = [
        {
          source = "~/settings";
          dest = "~/settings";
        }
        {
          source = "~/optional, \"odd\" $HOME";
          dest = "~/optional";
          mode = "rw";
          optional = true;
        }
        {
          source = "~/project/data";
          dest = "/data";
          mode = "rw";
          optional = true;
        }
      ];
      podmanArgs = [ "--env=ODD=a, \"b\" $HOME ~" ];
      git = {
        name = "A. Developer";
        email = "a@example.com";
      };
      sessions = ".claude/sessions";
      agent = pkgs.writeShellScriptBin "agent" ''echo "the agent in $PWD"'';
      cpus = 1;
    };

    python.profile = profiles.python;

    # Without a network, but for hosts of test_closed_network.sh's internet.
    closed = {
      profile = profiles.python;
      mcp.tmux-debug = { };
      allowedHosts = [
        "api.example.com"
        "*.example.org:443"
        "plain.example.net:80"
      ];
      networkAllowlist = [ "limited.example.com" ];
      secrets = [
        {
          host = "keyed.example.com";
          variable = "KEYED_API_KEY";
          header = "x-api-key";
          urlVariable = "KEYED_BASE_URL";
        }
        {
          host = "ported.example.com:8443";
          variable = "PORTED_API_KEY";
          header = "Authorization";
          prefix = "Bearer ";
          urlVariable = "PORTED_BASE_URL";
        }
        {
          host = "not.certified.example.com";
          variable = "UNCERTIFIED_API_KEY";
          header = "x-api-key";
          urlVariable = "UNCERTIFIED_BASE_URL";
        }
      ];
    };

    # Where all of the project can be changed.
    unprotected = {
      mcp.tmux-debug = { };
      protect = [ ];
    };

    # With the repository of a linked worktree.
    worktree = {
      mcp.tmux-debug = { };
      worktree = true;
    };

    # With what a flake's user has in a development shell, and ports in both directions.
    shell = {
      name = "project-shell";
      mcp.tmux-debug = { };
      inputsFrom = [
        (pkgs.mkShell {
          packages = [ pkgs.dash ];
          shellHook = "exit 1";
          DATABASE = "postgres://localhost/of the shell";
          EDITOR = "not this one";
        })
        (pkgs.mkShell {
          packages = [ pkgs.zsh ];
          DATABASE = "another";
          SECOND = "two\nlines";
        })
      ];
      packages = [ (pkgs.writeShellScriptBin "dash" "echo another dash") ];
      env.EDITOR = "vi";
      passEnv = [ "OF_THE_START" ];
      network = "none";
      ports = [
        28471
        "28472:8000"
      ];
      hostPorts = [ 28473 ];
    };

    # With the Nix of the host.
    nix.nix = true;

    # For the main session, in a home directory that is kept.
    kept = {
      mcp.tmux-debug.scope = "main";
      mounts = [
        {
          source = "~/kept";
          dest = "~";
          mode = "rw";
        }
      ];
    };
  }
  // {
    # That of docs/nix.md.
    base = self.packages.${pkgs.stdenv.hostPlatform.system}.sandbox;
  };

  # What is to be built when the tests run, or "" where nixpkgs refuses, since the client is not free:
  # NIXPKGS_ALLOW_UNFREE=1 nix run --impure .#e2e
  withClient =
    scope:
    let
      sandbox = mkSandbox {
        packages = [ pkgs.python3 ];
        mcp.tmux-debug = { inherit scope; };
        agent = pkgs.claude-code;
        network = "none";
      };
      derivation = builtins.tryEval (builtins.unsafeDiscardOutputDependency sandbox.drvPath);
    in
    if derivation.success then derivation.value else "";
in
pkgs.writeShellApplication {
  name = "tmux-debug-e2e";
  runtimeInputs = [
    pkgs.openssl
    pkgs.python3
  ];
  text = ''
    ${lib.concatStrings (
      lib.mapAttrsToList (name: sandbox: ''
        export SANDBOX_${lib.toUpper name}=${lib.getExe sandbox}
      '') sandboxes
    )}
    export CLIENT_SUBAGENT=${withClient "subagent"}
    export CLIENT_MAIN=${withClient "main"}
    exec ${self}/tests/tmux-mcp/run-e2e.sh "$@"
  '';
}
