"""Running commands to their end.

`giving` gives them to a shell, `following` follows them, and `runs` does both.
"""
