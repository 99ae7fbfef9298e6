"""Looking at a pane: finding out from the kernel, by several looks, what its program is doing.

`snapshot` takes one look through /proc. `activity` decides from several what the program does and
awaits, without I/O. `pane_terminal` takes the looks that decisions need. `state` holds the answer.
"""
