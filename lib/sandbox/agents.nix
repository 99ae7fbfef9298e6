# The files in /etc that agents other than Claude Code read, before or after those of the home
# directory: their texts, by their paths. Each says that /workspace is trusted, since whoever starts
# an agent there has said so, and has these servers.
{
  lib,
  # The configurations of the servers for the main session.
  servers,
}:

let
  # JSON's strings are TOML's, too.
  toml = lib.concatStrings (
    lib.mapAttrsToList (name: server: ''
      [mcp_servers.${name}]
      command = ${builtins.toJSON server.command}
      args = ${builtins.toJSON server.args}
      env = { ${
        lib.concatStringsSep ", " (
          lib.mapAttrsToList (variable: value: "${variable} = ${builtins.toJSON value}") server.env
        )
      } }
    '') servers
  );
in
{
  # Codex. It would copy itself into the home directory, for a process that stays.
  "etc/codex/managed_config.toml" = ''
    [features]
    daemon_auto_start = false
    [projects."/workspace"]
    trust_level = "trusted"
    ${toml}'';

  # Gemini CLI, which reads this only if it is root's, and no link.
  "etc/gemini-cli/settings.json" = builtins.toJSON {
    security.folderTrust.enabled = false;
    mcpServers = lib.mapAttrs (_: server: removeAttrs server [ "type" ]) servers;
  };

  "etc/opencode/opencode.json" = builtins.toJSON {
    mcp = lib.mapAttrs (_: server: {
      type = "local";
      command = [ server.command ] ++ server.args;
      environment = server.env;
    }) servers;
  };
}
