# What clients are given of a server.
{ lib }:
{
  # Who has the server: a subagent that has its name, and else nobody; or the main session.
  scopes = [
    "subagent"
    "main"
  ];

  /**
    The configuration of a server with these options, as Claude Code has it in `mcpServers`.

    # Type

    ```
    configOf :: Server -> { ${option} :: String | Bool | Null } -> {
      type :: String,
      command :: String,
      args :: [String],
      env :: { ${variable} :: String }
    }
    ```
  */
  configOf =
    server: options:
    {
      type = "stdio";
      args = [ ];
    }
    // server.mkServerConfig options;

  /**
    The text of the file for a subagent of Claude Code's that alone has the server of its name, with
    this configuration, and with these variables where it does not give them.

    # Type

    ```
    agentFile :: String -> {
      description :: { ... } -> String,
      env :: { ${variable} :: String },
      prompt :: { ... } -> String,
      tools :: [String],
      config :: { ... }
    } -> String
    ```
  */
  agentFile =
    name:
    {
      description,
      env,
      prompt,
      tools,
      config,
    }:
    let
      started = config // {
        env = env // config.env or { };
      };
    in
    # The server stands in the list of the front matter. If its tools were named in `tools`, the main
    # session would have their names as well.
    ''
      ---
      name: ${name}
      description: ${builtins.toJSON (description started)}
      tools: ${lib.concatStringsSep ", " tools}
      mcpServers:
        - ${name}: ${builtins.toJSON started}
      ---
      ${prompt started}'';
}
