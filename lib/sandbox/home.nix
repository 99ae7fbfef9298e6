# The files in the home directory that Claude Code reads: their texts, by their paths.
{
  lib,
  # The subagents, each with the configuration of the server that it alone has.
  subagents,
  # The configurations of the servers for the main session.
  servers,
}:

let
  # The server stands in the list of the front matter. Were its tools named in `tools`, too, the main
  # session would have their names.
  agentFile = name: agent: ''
    ---
    name: ${name}
    description: ${builtins.toJSON agent.description}
    tools: ${lib.concatStringsSep ", " agent.tools}
    mcpServers:
      - ${name}: ${builtins.toJSON agent.config}
    ---
    ${agent.prompt}'';
in
lib.mapAttrs' (
  name: agent: lib.nameValuePair ".claude/agents/${name}.md" (agentFile name agent)
) subagents
// lib.optionalAttrs (servers != { }) {
  ".claude.json" = builtins.toJSON { mcpServers = servers; };
}
