"""The verbs of `tmux-debug`: their registry and their parsers, and how a server answers them.

Most verbs are tools of `debug` by short names. Their flags, help and completion come from the table
of the tool's arguments, so that nothing about a tool is said twice. The words of a command line
come in, and text for standard output, text for standard error and an exit status go out. What talks
to a caller raises CallerGoneError once the caller is gone, or sends nonsense.
"""
