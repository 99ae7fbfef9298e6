# The files in the home directory that Claude Code reads: their texts, by their paths in the image,
# where the home directory is made of etc/skel.
{
  lib,
  # The subagents, each with the configuration of the server that it alone has.
  subagents,
  # The configurations of the servers for the main session.
  servers,
  enabledPlugins,
}:

let
  inherit (import ../mcp/clients.nix { inherit lib; }) agentFile;
in
lib.mapAttrs' (
  name: agent: lib.nameValuePair "etc/skel/.claude/agents/${name}.md" (agentFile name agent)
) subagents
// {
  # Whoever starts a sandbox has been asked all of this on the host: a client asks it again in each
  # new home directory.
  "etc/skel/.claude.json" = builtins.toJSON (
    {
      hasCompletedOnboarding = true;
      projects."/workspace".hasTrustDialogAccepted = true;
    }
    // lib.optionalAttrs (servers != { }) { mcpServers = servers; }
  );
}
// lib.optionalAttrs (enabledPlugins != { }) {
  "etc/skel/.claude/settings.json" = builtins.toJSON { inherit enabledPlugins; };
}
