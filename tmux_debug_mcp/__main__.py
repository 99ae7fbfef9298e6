"""`python -m tmux_debug_mcp` is the command `tmux-debug-mcp`."""

from .command.serve import main

main()
