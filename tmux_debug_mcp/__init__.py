"""An MCP server that gives a debugging agent real terminals: tmux panes.

It has two halves, and the first never imports the second, as `tests/tools/house.py` checks:

- What serves: `server`, on top of `tools` (what MCP clients call) and `verbs` (what `tmux-debug`
  asks for), which work with `panes`, `logs`, `pictures`, `tmux`, `vt` and `linux`.
- What people use: `command` (the program `tmux-debug`), on top of `viewing`, `clients`, `doctor`
  and `demo`.
"""

__version__ = "0.2.0"
