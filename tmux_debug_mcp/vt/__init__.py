"""What a terminal is, without I/O: keys, rows of cells, character sets, control sequences.

`keys` and `steps` say what to type. `transcript` reads a program's output as lines: `interpreter`
takes it apart, `grid` is the screen, and `history` has what has left it. `echo`, `drawing` and
`marks` recognise parts of output; `screen` reads captures and `picture` draws them. Nothing here
opens a file (but the fonts of `picture`), waits, asks the clock or knows what a pane is.
"""
