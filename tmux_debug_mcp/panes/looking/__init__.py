"""Looking at a pane: finding out from the kernel, by several looks, what its program is doing.

`snapshot` takes one look through /proc. `activity` decides from several what the program does and
awaits, without I/O. `terminal` takes the looks that a decision needs. `state` holds the answer.
"""
