"""Panes: made, looked at, typed into, waited for, given commands, recorded and ended.

`engine` knows them all; `pane` is one. What is done with a pane has folders: `looking`, `shells`,
`running` and `waiting`. Beside them, `sending` types, `stopping` stops a program, `capturing` and
`recording` show a screen, `creation` and `starting` make panes. Nothing here knows MCP, a tool's
arguments or the words of a toolset.
"""
