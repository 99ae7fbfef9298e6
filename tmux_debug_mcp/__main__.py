"""`python -m tmux_debug_mcp` runs the command `tmux-debug-mcp`."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the current directory, whose modules are the project's

from .command.serve import main

main()
