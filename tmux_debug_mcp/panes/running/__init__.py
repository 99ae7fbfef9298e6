"""Running commands to their end.

`giving` gives them to a shell, `following` follows them, and `runs` does both. `outcomes` says how
a command ended, why the run is over, and what it printed.
"""
