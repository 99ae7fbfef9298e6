"""The commands: `tmux-debug`, the panes of a running server from a shell, and `tmux-debug-mcp`.

The server parses and answers a verb (room `verbs`). The process here finds the server, passes the
words on and prints what comes back. It must start about as fast as an interpreter, so it imports no
heavy module for that: see `sockets`. All else is imported where it is needed.
"""
