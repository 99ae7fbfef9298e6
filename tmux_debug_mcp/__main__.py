"""`python -m tmux_debug_mcp` is the command `tmux-debug-mcp`."""

from .cli import main

main()
