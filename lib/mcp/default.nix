# The registry of MCP servers: the definition of each, by name.
{ pkgs }:
{
  tmux-debug = import ./tmux { inherit pkgs; };
}
