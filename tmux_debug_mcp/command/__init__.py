"""The commands: `tmux-debug`, the panes of a running server from a shell, and `tmux-debug-mcp`.

A verb is parsed and answered by the server (room `verbs`). The process here finds the server,
passes the words on and prints what comes back. It has to start in about the time of an interpreter,
so it imports no heavy module on that way: see `sockets`. All else is imported where it is needed.
"""
