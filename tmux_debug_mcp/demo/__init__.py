"""What `tmux-debug-mcp demo` shows."""
