# The definition of the MCP server `tmux-debug`, for a registry like the one above or wrapix's.
{
  pkgs,
  package ? pkgs.callPackage ./mcp-server.nix { },
}:

let
  inherit (pkgs) lib;
  arguments = import ../../arguments.nix { inherit lib; };

  # The README's table of options, in which the variables are explained.
  variables = {
    audit = "TMUX_DEBUG_AUDIT";
    auditFull = "TMUX_DEBUG_AUDIT_FULL";
    dropEnv = "TMUX_DEBUG_DROP_ENV";
    logDir = "TMUX_DEBUG_LOG_DIR";
    tmux = "TMUX_DEBUG_TMUX";
  };
in
{
  name = "tmux-debug";
  inherit package;

  # Both by name, because an environment of packages does not follow what a package needs. With tmux one can attach.
  packages = [
    package
    pkgs.tmux
  ];

  /**
    How to start the server with these options: the command, and what it needs in its environment.

    # Inputs

    `options`: strings; each stands for the server's option of the same name, and null is the same as none:

    - `audit`: a file to which a record of every call is appended
    - `auditFull`: a directory for what calls return of panes
    - `dropEnv`: names and patterns of variables that panes do not inherit, separated by commas
    - `logDir`: a directory in which the logs of panes are kept
    - `tmux`: the tmux to use instead of the package's own

    # Type

    ```
    mkServerConfig :: { audit, auditFull, dropEnv, logDir, tmux :: String | Null } -> { command :: String, env :: { ${variable} :: String } }
    ```

    # Examples

    ```nix
    mkServerConfig { audit = "/workspace/.debug-audit.log"; }
    => { command = "/nix/store/…/bin/tmux-debug-mcp"; env = { TMUX_DEBUG_AUDIT = "/workspace/.debug-audit.log"; }; }
    mkServerConfig { audti = "/workspace/.debug-audit.log"; }
    => error: tmux-debug.mkServerConfig: Unknown option: audti. Known: audit, auditFull, dropEnv, logDir, tmux.
    mkServerConfig { audit = ./audit.log; }
    => error: tmux-debug.mkServerConfig: `audit` is of type path (/home/me/audit.log), but it should be a string, or null for none.
    ```
  */
  mkServerConfig =
    options:
    let
      function = "tmux-debug.mkServerConfig";
      given = lib.filterAttrs (_: value: value != null) options;
      wrong = lib.filterAttrs (_: value: !lib.isString value) given;
      option = lib.head (lib.attrNames wrong);
      closedSetReason = arguments.closedSetReason {
        inherit function;
        kind = "option";
        known = lib.attrNames variables;
      } options;
      reason =
        if closedSetReason != null then
          closedSetReason
        else if wrong != { } then
          "${function}: `${option}` is of type ${builtins.typeOf wrong.${option}}"
          + " (${lib.generators.toPretty { multiline = false; } wrong.${option}}),"
          + " but it should be a string, or null for none."
        else
          null;
    in
    arguments.unlessReason reason {
      command = lib.getExe package;
      env = lib.mapAttrs' (name: lib.nameValuePair variables.${name}) given;
    };
}
