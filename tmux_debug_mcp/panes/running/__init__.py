"""Running commands to their end: `runs` starts them, `following` follows them.

`outcomes` says how a command ended, why the run is over, and what it printed.
"""
