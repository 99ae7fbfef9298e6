"""Running commands to their end: `runs` starts them, `following` and `following_jobs` follow them.

`outcomes` says how a command ended, why the run is over, and what it printed.
"""
