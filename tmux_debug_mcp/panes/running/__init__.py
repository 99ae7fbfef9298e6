"""Running commands to their end.

`giving` gives them to a shell, `runs` follows them until they are over.
"""
