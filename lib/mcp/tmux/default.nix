# The definition of the MCP server `tmux-debug`, as a registry of MCP servers has it.
{
  pkgs,
  # With the overlay, what other overlays have made of it.
  package ? pkgs.tmux-debug-mcp or (pkgs.callPackage ./mcp-server.nix { }),
}:

let
  inherit (pkgs) lib;
  inherit (import ../../options.nix { inherit lib; }) checked;
  inherit (import ./options.nix { inherit lib; }) options variables;

  keepOf = config: config.env.${variables.keep} or "";
  ifKept =
    config: kept: ends:
    if keepOf config == "" then ends else kept;
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

  # What `mkServerConfig` takes, as options of modules.
  inherit options;

  # A subagent that has this server to itself: what others are told of it, what is in the server's
  # environment unless an option says otherwise, the tools that it has besides, and its prompt. What
  # it starts outlives it for a while, so that others can use it.
  subagent = {
    description =
      config:
      "Debugs a running program in terminals. Give it the symptom and a start command. "
      + ifKept config (
        "What it leaves running ends ${keepOf config} after its last use."
      ) "What it starts ends with it.";
    env.${variables.keep} = "30m";
    tools = [
      "Bash"
      "Read"
      "Grep"
      "Glob"
    ];
    prompt =
      config:
      let
        given = config.env.${variables.toolsets} or "";
        toolsets = if given == "" then "debug" else given;
        names = lib.splitString "," (builtins.replaceStrings [ " " ] [ "" ] toolsets);
      in
      # The first names tools of the toolset debug.
      builtins.readFile (if lib.elem "debug" names then ./subagent.md else ./subagent-other.md)
      + ifKept config ''
        What you leave running goes on, and ends ${keepOf config} after its last use: say what runs where, and how to end it (`tmux-debug kill NAME`). What runs without your doing is another's: leave it.
      '' ''
        What you start ends with you: don't tell anybody to use it. If you find what you did not start, another subagent shares your server, and all ends when one of you does: report that each needs a name of its own.
      '';
  };

  /**
    How the server is started with these options: its command, and what that needs in its
    environment.

    # Inputs

    `given`
    : strings, but `allowKill`, which is a boolean; each is the server's option of that name in
      docs/reference.md, and null is the same as none

    # Type

    ```
    mkServerConfig :: { ${option} :: String | Bool | Null } -> {
      command :: String,
      env :: { ${variable} :: String }
    }
    ```

    # Examples

    ```nix
    mkServerConfig { audit = "/workspace/.debug-audit.log"; }
    => {
      command = "/nix/store/.../bin/tmux-debug-mcp";
      env = { TMUX_DEBUG_AUDIT = "/workspace/.debug-audit.log"; };
    }
    mkServerConfig { audti = "/workspace/.debug-audit.log"; }
    => error: The option `audti' does not exist. Definition values:
       - In `tmux-debug.mkServerConfig': "/workspace/.debug-audit.log"

       Did you mean `audit', `env' or `auditFull'?
    mkServerConfig { toolsets = "debgu"; }
    => error: A definition for option `toolsets' is not of type `null or one or more of debug, tabs,
       terminal, tmux, separated by commas, but not debug with tmux'. Definition values:
       - In `tmux-debug.mkServerConfig': "debgu"
    ```
  */
  mkServerConfig =
    given:
    let
      values = lib.filterAttrs (_: value: value != null) (
        checked "tmux-debug.mkServerConfig" options given
      );
    in
    {
      command = lib.getExe package;
      # Of a boolean, true is "1" and false the empty string, which is none.
      env = lib.mapAttrs' (
        option: value: lib.nameValuePair variables.${option} (toString value)
      ) values;
    };
}
