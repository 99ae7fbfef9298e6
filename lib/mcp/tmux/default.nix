# The definition of the MCP server `tmux-debug`, as a registry of MCP servers has it.
{ pkgs }:

let
  inherit (pkgs) lib;
  inherit (import ../../arguments.nix { inherit lib; }) checked closedSet isOrNull;

  # With the overlay, what other overlays have made of it.
  package = pkgs.tmux-debug-mcp or (pkgs.callPackage ./mcp-server.nix { });

  # The table of options in docs/reference.md has the same rows.
  variables = {
    allowKill = "TMUX_DEBUG_ALLOW_KILL";
    audit = "TMUX_DEBUG_AUDIT";
    auditFull = "TMUX_DEBUG_AUDIT_FULL";
    cwd = "TMUX_DEBUG_CWD";
    dropEnv = "TMUX_DEBUG_DROP_ENV";
    env = "TMUX_DEBUG_ENV";
    keep = "TMUX_DEBUG_KEEP";
    logDir = "TMUX_DEBUG_LOG_DIR";
    shell = "TMUX_DEBUG_SHELL";
    size = "TMUX_DEBUG_SIZE";
    socket = "TMUX_DEBUG_SOCKET";
    tmux = "TMUX_DEBUG_TMUX";
    toolsets = "TMUX_DEBUG_TOOLSETS";
  };

  checkOptions = closedSet {
    kind = "option";
    checks = lib.mapAttrs (_: _: isOrNull "a string" "none" lib.isString) variables // {
      allowKill = isOrNull "a boolean" "false" lib.isBool;
    };
  };
in
{
  name = "tmux-debug";
  inherit package;

  # Both, because an environment made of packages does not follow what they refer to. With tmux a
  # person can attach.
  packages = [
    package
    pkgs.tmux
  ];

  # The names of the options of `mkServerConfig`.
  options = lib.attrNames variables;

  # A subagent that has this server to itself: what others are told of it, the tools that it has
  # besides, and its prompt.
  subagent = {
    description = "Debugs a running program in terminals. Tell it the symptom and how to start it.";
    tools = [
      "Bash"
      "Read"
      "Grep"
      "Glob"
    ];
    prompt = builtins.readFile ./subagent.md;
  };

  /**
    How the server is started with these options: its command, and what that needs in its
    environment.

    # Inputs

    `options`
    : strings, but `allowKill`, which is a boolean; each is the server's option of that name, and null is the same as
      none:

      - `allowKill`: with `socket`, whether tmux_kill may end things there
      - `audit`: a file to which a record of every call is appended
      - `auditFull`: a directory for what calls return of panes
      - `cwd`: the directory where panes start
      - `dropEnv`: variables that panes do not inherit, names and patterns separated by commas
      - `env`: more variables for panes, NAME=VALUE separated and quoted as for a shell
      - `keep`: serve through a server that goes on without the client, for so long, such as 60m
      - `logDir`: a directory in which the logs of panes are kept
      - `shell`: the shell of panes, as `lib.getExe` tells it
      - `size`: the size of sessions in the toolset terminal, such as 120x40
      - `socket`: the user's own tmux server for the toolsets tmux and tabs, a socket's path or default
      - `tmux`: the tmux to use instead of the package's own, as `lib.getExe` tells it
      - `toolsets`: the tools to offer, names of toolsets separated by commas

    # Type

    ```
    mkServerConfig :: {
      allowKill :: Bool | Null,
      audit :: String | Null,
      auditFull :: String | Null,
      cwd :: String | Null,
      dropEnv :: String | Null,
      env :: String | Null,
      keep :: String | Null,
      logDir :: String | Null,
      shell :: String | Null,
      size :: String | Null,
      socket :: String | Null,
      tmux :: String | Null,
      toolsets :: String | Null
    } -> { command :: String, env :: { ${variable} :: String } }
    ```

    # Examples

    ```nix
    mkServerConfig { audit = "/workspace/.debug-audit.log"; }
    => {
      command = "/nix/store/.../bin/tmux-debug-mcp";
      env = { TMUX_DEBUG_AUDIT = "/workspace/.debug-audit.log"; };
    }
    mkServerConfig { audti = "/workspace/.debug-audit.log"; }
    => error: tmux-debug.mkServerConfig: Unknown option: audti.
       Known: allowKill, audit, auditFull, cwd, dropEnv, env, keep, logDir, shell, size, socket,
       tmux, toolsets.
    mkServerConfig { audit = /audit.log; }
    => error: tmux-debug.mkServerConfig: `audit` is of type path (/audit.log),
       but it should be a string, or null for none.
    ```
  */
  mkServerConfig =
    options:
    let
      given = lib.filterAttrs (_: value: value != null) (
        checked "tmux-debug.mkServerConfig" checkOptions options
      );
    in
    {
      command = lib.getExe package;
      # Of a boolean, true is "1" and false the empty string, which is none.
      env = lib.mapAttrs' (option: value: lib.nameValuePair variables.${option} (toString value)) given;
    };
}
