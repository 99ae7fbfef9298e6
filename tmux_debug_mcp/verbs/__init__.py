"""The verbs of `tmux-debug`, as a server answers them.

A verb is a tool of `debug` by a short name. Its flags, its help and its completion come from the
table of the tool's arguments, so that nothing about a tool is said twice. The words of a command
line come in, and text for standard output, text for standard error and an exit status go out.
"""
