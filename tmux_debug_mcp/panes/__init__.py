"""Panes: making, watching and ending them, typing, waiting, running commands and recording.

- All panes: `engine`. Reading a pane or a kept log: `readable`.
- One pane: `pane`, on top of `place` (where it is, and its processes) and `keyboard`.
- Making a pane: `creation`; `pane.sh` and `environment.py` run in the new pane.
- Typing: `sending`. Stopping a program: `stopping`. Changing the size: `sizing`.
- Showing a screen: `capturing`, `recording`.
- Watching: `watching`, the loop that asks rules. A rule stands beside those who need its verdict.
- Waiting for something: `waiting`. For a prompt: `prompts`. The result: `reports`.
- Folders below these modules: `shells`, and `looking` on top of it. Above: `running`.

Functions that work on a pane raise PaneLostError once the pane is gone, PaneExitedError if they
need its program and that has ended, KeyboardHeldError while a person has the keyboard that they
need, TmuxStuckError if tmux does not answer, and StorageError if there is no room for a file.
Docstrings list only other errors.

Nothing here knows about MCP or the wording of a toolset; errors of arguments name the parameters
that tools have in common.
"""
