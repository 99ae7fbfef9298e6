"""Tools: four toolsets over one engine, and the one place where calls pass.

`toolbox` takes calls; `schema` and `arguments` check them; `debug`, `tabs`, `terminal` and `tmux`
are the toolsets, each a table of tools over a class of handlers. Handlers say in a toolset's words
what `panes` does. What two toolsets need belongs into `panes`, not here.
"""
