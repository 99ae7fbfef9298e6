# The files in the home directory that Claude Code reads: their texts, by their paths.
{
  lib,
  # The subagents, each with the configuration of the server that it alone has.
  subagents,
  # The configurations of the servers for the main session.
  servers,
}:

let
  inherit (import ../mcp/clients.nix { inherit lib; }) agentFile;
in
lib.mapAttrs' (
  name: agent: lib.nameValuePair ".claude/agents/${name}.md" (agentFile name agent)
) subagents
// lib.optionalAttrs (servers != { }) {
  ".claude.json" = builtins.toJSON { mcpServers = servers; };
}
