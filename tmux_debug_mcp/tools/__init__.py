"""Tools: four toolsets over one engine, and the one place that all calls go through.

- Calls: `toolbox` takes them, `records` puts them on record, `arguments` checks their arguments.
- Toolsets: `toolset` says what one is made of. `debug`, `tabs`, `terminal` and `tmux` declare their
  tools where they are answered, with their instructions and their sentences for errors.
- Below them: `debug_arguments`, which the help of `tmux-debug` uses, too, and `results` with the
  status line; `users_tabs` for `tabs` on the user's server; `sessions` and `screens` (MCP
  resources) for `terminal`; `own_server` for `tmux` on ours.

Handlers say in a toolset's words what `panes` does, and raise what it raises. What two toolsets
need belongs in `panes`.
"""
