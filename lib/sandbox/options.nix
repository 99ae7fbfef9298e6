# The parameters of `mkSandbox`, as options of modules.
{
  lib,
  mcpServers,
  profiles,
  protectDefault,
}:

let
  inherit (lib) mkOption types;
  inherit (import ../options.nix { inherit lib; }) matching setOf typeOf;
  inherit (import ../mcp/clients.nix { inherit lib; }) scopes;
  inherit (import ./hosts.nix { inherit lib; }) isHost isHostWithPort portsOf;

  variable = matching "the name of a variable" "[a-zA-Z_][a-zA-Z0-9_]*";
  path = matching "a string with a path that starts with / or ~" "(/|~$|~/).*";

  # Where the image has what it needs: nothing may be mounted over these directories, nor over or
  # below the latter ones.
  notOver = "(/(bin|dev|entrypoint[.]sh|etc|home|run|share|tmp/home|var|workspace))?";
  notBelow =
    "/(etc/codex|etc/gemini-cli|etc/opencode|etc/skel|nix|proc|run/inside|run/proxy|run/repository"
    + "|sys|usr)(/.*)?";
  isPlace =
    value:
    let
      plain = lib.removeSuffix "/" value;
    in
    path.check value
    && builtins.match notOver plain == null
    && builtins.match notBelow plain == null
    && builtins.match ".*/(\\.{0,2})(/.*|$)" plain == null;
  place = typeOf (
    "a path that starts with / or ~, where neither the project nor the image has its own files"
  ) isPlace;

  hostSuchAs = examples: typeOf "a host's name in lower case, such as ${examples}";
  host = hostSuchAs ''"api.example.com" or "*.example.org"'' isHost;
  hostWithPort = hostSuchAs ''"api.example.com" or "*.example.org:443"'' isHostWithPort;
  oneHost = hostSuchAs ''"api.example.com:443"'' (
    value: isHostWithPort value && !lib.hasPrefix "*" value
  );
  # Below, only root can listen, inside and on this machine.
  isPort = value: lib.isInt value && 1024 <= value && value < 65536;
  hostPort = typeOf "a port from 1024 on, such as 5432" isPort;
  port = typeOf ''a port from 1024 on, such as 8080, or two, such as "18080:8080"'' (
    value:
    if lib.isString value then
      portsOf value != null && lib.all isPort (portsOf value)
    else
      isPort value
  );
  isInProject =
    value:
    lib.isString value
    && builtins.match "([^/?[\n]+/)*[^/?[\n]+" value != null
    && builtins.match "~.*|.*[*][*].*" value == null
    && lib.intersectLists (lib.splitString "/" value) [
      "."
      ".."
    ] == [ ];
  inProject = typeOf (
    ''a relative path such as "Makefile" or ".claude/*.json", without ./, .., ** or a / at its end''
  ) isInProject;
  directory = typeOf ''a relative path such as ".claude/sessions", without ./, .. or *'' (
    value: isInProject value && builtins.match ".*[*].*" value == null
  );
  mebibytes = typeOf "a whole number from 64 on" (value: lib.isInt value && value >= 64);
  positiveNumber = typeOf "a number above 0" (
    value: (lib.isInt value || lib.isFloat value) && value > 0
  );

  mount =
    setOf ''a set such as { source = "~/data"; dest = "/data"; }'' {
      source = mkOption {
        type = path;
        description = "The path on the host; ~ is the home directory of whoever runs the sandbox.";
        example = "~/.config/git";
      };
      dest = mkOption {
        type = place;
        description = "The path in the container; ~ is the home directory there.";
        example = "~/.config/git";
      };
      mode = mkOption {
        type = types.enum [
          "ro"
          "rw"
        ];
        default = "ro";
        description = "\"ro\" to mount it read-only, \"rw\" writable.";
      };
      optional = mkOption {
        type = types.bool;
        default = false;
        description = "Whether to skip the mount if `source` does not exist.";
      };
    };

  secret =
    setOf "a set with host, variable, header and urlVariable" {
      host = mkOption {
        type = oneHost;
        description = "The host, on port 443 unless one is given.";
        example = "api.anthropic.com";
      };
      variable = mkOption {
        type = variable;
        description = "The variable that holds the key when the sandbox is started.";
        example = "ANTHROPIC_API_KEY";
      };
      header = mkOption {
        type = matching "the name of a header" "[A-Za-z0-9-]+";
        description = "The header that is set in each request.";
        example = "x-api-key";
      };
      prefix = mkOption {
        type = matching "a string of letters, digits and blanks" "[A-Za-z0-9 ]*";
        default = "";
        description = "The text before the key in the header.";
        example = "Bearer ";
      };
      urlVariable = mkOption {
        type = variable;
        description = "The variable that tells the client inside where to send its requests.";
        example = "ANTHROPIC_BASE_URL";
      };
    };

  # What the parameters and the profiles share.
  contents = {
    packages = mkOption {
      type = types.listOf types.package;
      default = [ ];
      description = "Packages. Of two programs of the same name, the first package's is used.";
    };
    env = mkOption {
      type = types.attrsOf types.str;
      default = { };
      description = "Environment variables. Everybody can read them in the Nix store.";
      example = {
        PORT = "8080";
      };
    };
    mounts = mkOption {
      type = types.listOf mount;
      default = [ ];
      description = "Host directories and files to mount.";
    };
  };

  # A set such as those in `profiles`, or a profile of wrapix'.
  profile = setOf "a profile, such as profiles.rust" (
    contents
    // {
      name = mkOption {
        type = matching (
          "a string of lower-case letters, digits and inner dashes"
        ) "[a-z0-9]+(-[a-z0-9]+)*";
        description = "The profile's name, which is also part of the image's name.";
      };
      networkAllowlist = mkOption {
        type = types.listOf host;
        default = [ ];
        description = "The hosts that the profile's package managers need.";
      };
      enabledPlugins = mkOption {
        type = types.attrsOf types.bool;
        default = { };
        description = "Claude Code plugins.";
      };
      shellHook = mkOption {
        type = types.str;
        default = "";
        description = "What a shell made from the sandbox runs on the host.";
      };
      writableDirs = mkOption {
        type = types.listOf place;
        default = [ ];
        description = "Directories in memory, which may contain mounts.";
      };
      # wrapix' own profile for Rust has these, too.
      toolchain = ignored;
      withToolchain = ignored;
    }
  );
  ignored = mkOption {
    type = types.nullOr types.raw;
    default = null;
    visible = false;
  };

  # What wrapix has and this sandbox has not. Left out in silence, it would be missed.
  refused =
    none: reason: name:
    mkOption {
      type = types.raw;
      default = none;
      visible = false;
      apply = value: lib.throwIf (value != none) "mkSandbox: `${name}` is refused: ${reason}" value;
    };
in
contents
// lib.mapAttrs (name: option: option name) {
  deployKey = refused null "this sandbox handles no keys. Mount one with `mounts`.";
  mcpRuntime = refused false "the servers are chosen when the image is built. Set them in `mcp`.";
  model = refused null (
    "the agent chooses its model."
    + " Set the variable that it reads, such as ANTHROPIC_MODEL, with `env`."
  );
}
// {
  name = mkOption {
    type = matching "a command's name of lower-case letters, digits and inner dashes" (
      "[a-z0-9]+(-[a-z0-9]+)*"
    );
    default = "tmux-debug-sandbox";
    description = "The command's name, so that a shell can have several sandboxes.";
  };
  profile = mkOption {
    type = profile;
    default = profiles.base;
    defaultText = lib.literalExpression "profiles.base";
    description = "What the sandbox is for: one of `profiles`, one of wrapix's, or your own set.";
    example = lib.literalExpression "profiles.rust";
  };
  mcp = lib.mapAttrs (
    name: server:
    mkOption {
      type = types.nullOr (
        setOf ''options, such as { audit = "/workspace/.debug-audit.log"; }'' (
          server.options
          // {
            scope = mkOption {
              type = types.enum scopes;
              default = lib.head scopes;
              description = ''
                Who has the tools: "subagent" for a subagent named ${name}, while the main session
                has none, or "main" for the main session.
              '';
            };
          }
        )
      );
      default = null;
      description = "The options of the MCP server ${name}; null for no such server.";
      example = {
        audit = "/workspace/.debug-audit.log";
      };
    }
  ) mcpServers;
  agent = mkOption {
    type = types.nullOr types.package;
    default = null;
    description = "The package whose main program runs if no command is given; null for a shell.";
    example = lib.literalExpression "pkgs.claude-code";
  };
  inputsFrom = mkOption {
    type = types.listOf types.package;
    default = [ ];
    description = "Development shells whose packages and variables the sandbox is to have.";
    example = lib.literalExpression "[ self.devShells.x86_64-linux.default ]";
  };
  nix = mkOption {
    type = types.bool;
    default = false;
    description = ''
      Whether Nix works inside, by the host's daemon: all of the store can be read, builds run
      outside of the sandbox, and a user whom the daemon trusts is as good as the host's root.
    '';
  };
  passEnv = mkOption {
    type = types.listOf variable;
    default = [ ];
    description = "Variables that are passed in with the values that they have at the start.";
    example = [ "ANTHROPIC_API_KEY" ];
  };
  ports = mkOption {
    type = types.listOf port;
    default = [ ];
    description = ''
      Ports of the sandbox that only this machine can reach, at 127.0.0.1: on the same port or, with
      "18080:8080", on the first.
    '';
    example = [
      8080
      "13000:3000"
    ];
  };
  hostPorts = mkOption {
    type = types.listOf hostPort;
    default = [ ];
    description = "Ports of this machine that can be reached from inside, at 127.0.0.1.";
    example = [ 5432 ];
  };
  git = mkOption {
    type = types.nullOr (
      setOf ''a set such as { name = "A. Developer"; email = "a.developer@example.com"; }'' {
        name = mkOption {
          type = types.str;
          description = "The committer's name.";
        };
        email = mkOption {
          type = types.str;
          description = "The committer's address.";
        };
      }
    );
    default = null;
    description = "The committer inside; null for none.";
    example = {
      name = "A. Developer";
      email = "a.developer@example.com";
    };
  };
  sessions = mkOption {
    type = types.nullOr directory;
    default = null;
    description = ''
      The directory in the project that keeps Claude Code's sessions; null to lose them with the
      container.
    '';
    example = ".claude/sessions";
  };
  cpus = mkOption {
    type = types.nullOr positiveNumber;
    default = null;
    description = "The CPU limit; null for none.";
    example = 1.5;
  };
  memoryMb = mkOption {
    type = types.nullOr mebibytes;
    default = 4096;
    description = "The memory limit in MiB, including files in memory; null for none.";
  };
  network = mkOption {
    type = types.nullOr types.str;
    default = null;
    description = "podman's `--network`; null for its default.";
    example = "none";
  };
  allowedHosts = mkOption {
    type = types.nullOr (types.listOf hostWithPort);
    default = null;
    description = ''
      The hosts that can be reached, each with a port (default 443); there is no other network.
    '';
    example = [
      "api.example.com"
      "*.example.org:8443"
    ];
  };
  networkAllowlist = mkOption {
    type = types.nullOr (types.listOf host);
    default = null;
    description = ''
      Hosts besides the profile's that can be reached, on any port, when the sandbox is started with
      WRAPIX_NETWORK=limit; null if it never is.
    '';
    example = [ "api.example.com" ];
  };
  secrets = mkOption {
    type = types.listOf secret;
    default = [ ];
    description = "Keys that stay outside, and are added to requests there.";
  };
  protect = mkOption {
    type = types.listOf inProject;
    default = protectDefault;
    defaultText = lib.literalExpression "protectDefault";
    description = "What in the project can't be changed from inside.";
    example = lib.literalExpression ''protectDefault ++ [ "Makefile" ]'';
  };
  worktree = mkOption {
    type = types.bool;
    default = false;
    description = "Whether git works in a linked worktree, with all branches of its repository.";
  };
  podmanArgs = mkOption {
    type = types.listOf types.str;
    default = [ ];
    description = "More arguments for `podman run`, added last.";
  };
}
