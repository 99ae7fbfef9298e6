"""Tools: four toolsets over one engine, and the one place where calls pass.

- Calls: `toolbox` takes and audits them, `schema` and `arguments` check them.
- Toolsets: `toolset` says what one is made of. `debug`, `tabs`, `terminal` and `tmux` are classes
  of handlers with a table of tools; `*_arguments` declare what tools take.
- Answers: `results` (of `debug`, with the status line), `tabs_results`. `sentences`: errors in the
  words of a toolset.
- `tabs` on the user's server: `users_tabs`. `tmux` on both: `servers`. `terminal`: `recordings`,
  `screens` (MCP resources).

Handlers say in a toolset's words what `panes` does. What two toolsets need belongs into `panes`.
"""
