"""An MCP server that gives a debugging agent real terminals: tmux panes."""

__version__ = "0.1.0"
