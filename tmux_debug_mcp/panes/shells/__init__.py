"""The shells in panes: how they differ, and how one is given a command.

`dialects` knows the shells, `jobs` puts a command into files that a shell reads. Nothing here knows
a pane; `panes.running.giving` gives a pane's shell one job after the other.
"""
