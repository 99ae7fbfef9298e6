"""Panes: made, looked at, typed into, waited for, given commands, recorded and ended.

`engine` knows them all; `pane` is one. `snapshot` and `terminal` look at a pane, `activity` decides
what it is doing. `shell` gives its shell jobs, `running` and `following` follow them. `sending`
types; `waiting` starts a `watching` of each pane and returns its observation. Nothing here knows
MCP, a tool's arguments or the words of a toolset.
"""
