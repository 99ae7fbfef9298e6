"""Panes: made, looked at, typed into, waited for, given commands, recorded and ended.

- All of them: `engine`; one of them, or a kept log, to be read: `readable`.
- One pane: `pane`, on top of `place` (where it is, and its processes) and `keyboard`.
- To make one: `creation`; in it run `pane.sh` and `environment.py`.
- To type: `sending`. To stop a program: `stopping`. To change the terminal: `display`.
- To show a screen: `capturing`, `recording`.
- To watch: `watching`. To wait for something: `waiting`. What came of it: `reports`.
- Folders below these modules: `shells`, and `looking` on top of it. Above: `running`.

What works on a pane raises PaneLostError once the pane is gone, PaneExitedError where its program
has to run and has ended, KeyboardHeldError while a person has the keyboard that it needs,
TmuxStuckError if tmux does not answer, and StorageError if there is no room for a file. Docstrings
name what else is raised.

Nothing here knows MCP, a tool's arguments or the words of a toolset.
"""
