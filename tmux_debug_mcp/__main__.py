"""`python -m tmux_debug_mcp` runs the command `tmux-debug-mcp`."""

from .command.serve import main

main()
