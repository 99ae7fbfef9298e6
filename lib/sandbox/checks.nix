# What is wrong with the arguments of `mkSandbox`: each function returns a sentence, or null.
{ lib }:

let
  inherit (import ./hosts.nix { inherit lib; }) portsOf;

  # The first case that holds, as a sentence.
  firstOf = cases: (lib.findFirst (case: case.holds) { says = null; } cases).says;
  case = holds: says: { inherit holds says; };

  # The first that stands in a list more than once; null if none does.
  twice = list: lib.findFirst (one: lib.count (other: other == one) list > 1) null list;
  firstMatch =
    pattern: list: lib.findFirst (text: builtins.match pattern text != null) null list;

  # The main programs of agents that don't read Claude Code's files.
  otherAgents = [
    "codex"
    "gemini"
    "goose"
    "opencode"
  ];

  # Arguments of podman's that break what a sandbox promises, or what the launcher relies on.
  breaking = "-[it]*d[it]*(=.*)?|--(detach|entrypoint|rm)(=.*)?";
  networking = "--(net|network|pod)(=.*)?|--publish.*|-p.*";
  # Variables that the image needs as they are.
  ofImage = "HOME|TMUX_DEBUG_SANDBOX_.*";
  ofHost = "PATH|SHELL|USER|LD_PRELOAD|${ofImage}";
in
{
  # What many mean who write this, where the types of the options would say it in other words.
  mistakeIn =
    arguments:
    let
      given = if lib.isAttrs arguments then arguments else { };
      is = name: test: given ? ${name} && test given.${name};
      # Of a package, what `pkgs.` could stand before.
      isName = value: lib.isString value && builtins.match "[a-zA-Z][a-zA-Z0-9_-]*" value != null;
      server = lib.findFirst (name: lib.isBool given.mcp.${name}) null (lib.attrNames given.mcp);
    in
    firstOf [
      (case (given ? callPackage)
        "the argument is a package set, which is for `mkLib`: (mkLib pkgs).mkSandbox { }"
      )
      (case (given ? enabledPlugins)
        "the argument is a profile: mkSandbox { profile = profiles.base; }"
      )
      (case (is "profile" isName)
        "`profile` is a string. Give the profile itself: profile = profiles.${given.profile};"
      )
      (case (is "mcp" (mcp: !lib.isAttrs mcp))
        "`mcp` should be a set with the options of each server: mcp.tmux-debug = { };"
      )
      (case (is "mcp" (mcp: !(mcp ? _type)) && server != null)
        "`mcp.${server}` should be the server's options: mcp.${server} = { };"
      )
      (case (is "agent" isName)
        "`agent` is a string. Give the package: agent = pkgs.${given.agent};"
      )
      (case (is "agent" lib.isString)
        "`agent` is a string. Give a package, which may be a script: pkgs.writeShellScriptBin"
      )
    ];

  # What does not go together in options that have their types.
  problemIn =
    {
      options,
      # Where something is mounted.
      places,
      # What `pkgs` is for.
      system,
    }:
    let
      isClosed = options.allowedHosts != null;
      hasNoNetwork = isClosed || options.network == "none";
      network = firstMatch networking options.podmanArgs;
      broken = firstMatch breaking options.podmanArgs;

      env = options.profile.env // options.env;
      noVariable = lib.findFirst (
        name: builtins.match "[a-zA-Z_][a-zA-Z0-9_]*" name == null
      ) null (lib.attrNames env);
      needed = firstMatch ofImage (lib.attrNames env);
      passed = firstMatch ofHost options.passEnv;
      ofSecrets = lib.concatMap (secret: [
        secret.variable
        secret.urlVariable
      ]) options.secrets;
      variable = twice (ofSecrets ++ options.passEnv);
      published = lib.findFirst (name: env ? ${name}) null ofSecrets;

      ports = map (port: if lib.isInt port then [ port port ] else portsOf port) options.ports;
      outside = twice (map lib.head ports);
      # What is listened on inside: by programs, and by what leads out (network.sh).
      inside = twice (
        lib.unique (map lib.last ports)
        ++ lib.unique options.hostPorts
        ++ [ 3128 ]
        ++ lib.imap0 (index: _: 3129 + index) options.secrets
      );

      foreign = lib.findFirst (shell: shell.system or system != system) null options.inputsFrom;
      noShell = lib.findFirst (shell: !(shell ? drvAttrs)) null options.inputsFrom;
      # Its packages come with its hook.
      bare = lib.findFirst (
        shell: shell ? stdenv && !(shell.stdenv ? mkDerivation)
      ) null options.inputsFrom;
      agent = options.agent.name or "a package";
      claudeOnly = lib.optionals (lib.elem (options.agent.meta.mainProgram or null) otherAgents) (
        lib.optional (lib.any (server: server != null && server.scope == "subagent") (
          lib.attrValues options.mcp
        )) "servers with the scope \"subagent\" (\"main\" is for all agents)"
        ++ lib.optional (options.sessions != null) "`sessions`"
        ++ lib.optional (options.profile.enabledPlugins != { }) "`enabledPlugins`"
      );
    in
    firstOf [
      (case (isClosed && !lib.elem options.network [ null "none" ])
        "`network` is \"${options.network}\", but with `allowedHosts` there is none. Remove one of them."
      )
      (case (hasNoNetwork && network != null)
        "`podmanArgs` has ${network}, but this sandbox has no network of its own. Remove it."
      )
      (case (broken != null)
        "`podmanArgs` has ${broken}, which is for the launcher alone. Remove it."
      )
      (case (!isClosed && options.secrets != [ ])
        "`secrets` need a closed network: set `allowedHosts`, to [ ] if no other host is needed."
      )
      (case (hasNoNetwork && options.nix) (
        "`nix` needs an open network: the host's daemon fetches whatever it is asked for."
        + " Remove `allowedHosts` and `network`, or `nix`."
      ))
      (case (twice places != null) (
        "`mounts` and `writableDirs` have ${twice places} more than once."
        + " Each `dest` can have one `source`."
      ))
      (case (noVariable != null)
        "`env` has ${builtins.toJSON noVariable}, which is no name of a variable."
      )
      (case (needed != null) "`env` has ${needed}, which the sandbox sets. Remove it.")
      (case (passed != null) "`passEnv` has ${passed}, which the sandbox sets. Remove it.")
      (case (variable != null) (
        "${variable} stands more than once in `secrets` and `passEnv`."
        + " Each variable can have one value."
      ))
      (case (published != null)
        "${published} of `secrets` is also in `env`, which everybody can read. Remove it there."
      )
      (case (outside != null) "`ports` has ${toString outside} more than once.")
      (case (twice options.hostPorts != null)
        "`hostPorts` has ${toString (twice options.hostPorts)} more than once."
      )
      (case (inside != null) (
        "port ${toString inside} inside would be for two things:"
        + " `ports`, `hostPorts`, and from 3128 on the proxy. Choose another one."
      ))
      (case (noShell != null)
        "`inputsFrom` has something else than a shell: inputsFrom = [ self.devShells.${system}.default ];"
      )
      (case (foreign != null) (
        "`inputsFrom` has a shell for ${foreign.system}, but this sandbox is for ${system}:"
        + " inputsFrom = [ self.devShells.${system}.default ];"
      ))
      (case (bare != null) (
        "`inputsFrom` has ${bare.name}, whose packages come with its hook, which does not run here."
        + " Make the shell with mkShell, or give the packages in `packages`."
      ))
      (case (options.agent != null && !(options.agent.meta or { } ? mainProgram)) (
        "`agent` is ${agent}, which doesn't say its main program."
        + " Name it: pkgs.writeShellScriptBin \"agent\" ''exec \${package}/bin/PROGRAM \"$@\"''"
      ))
      (case (claudeOnly != [ ])
        "${lib.concatStringsSep " and " claudeOnly} are for Claude Code alone, but `agent` is ${agent}."
      )
    ];
}
