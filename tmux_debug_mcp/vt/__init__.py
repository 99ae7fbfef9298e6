"""What a terminal is, without I/O: keys, rows of cells, character sets, what programs print.

`keys` and `steps` read what is to be typed; `transcript`, `screen`, `echo`, `drawing` and `marks`
understand what was printed; `picture` draws a screen. Text goes in, text comes out: nothing here
opens a file (but the fonts of `picture`), waits, asks the clock or knows what a pane is.
"""
