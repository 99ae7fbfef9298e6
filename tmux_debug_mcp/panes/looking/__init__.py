"""Looking at a pane: what its program is doing, as the kernel and several looks tell it.

`snapshot` takes one look through /proc. `activity` decides from several what the program does and
awaits, without I/O. `terminal` takes the looks that a decision needs. `state` has the answer.
"""
