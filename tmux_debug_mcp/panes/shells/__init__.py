"""The shells in panes: how they differ, and how to give one a command.

`dialects` knows the shells, `jobs` puts a command into files that a shell reads. Nothing here knows
about panes; `panes.running.giving` gives a pane's shell one job after another.
"""
