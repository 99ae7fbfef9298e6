"""What a terminal is: keys, rows of cells, character sets, control sequences. No I/O.

- To type: `keys`, `steps`.
- To read output as lines: `transcript`, on top of `interpreter`, `grid` and `rows`.
- To recognise parts of output: `sequences`, `charsets`, `marks`, `echo`.
- To print what programs chose: `printable`.
- To read captures as text: `captured`.

Nothing here opens a file, waits, asks the clock or knows what a pane is.
"""
