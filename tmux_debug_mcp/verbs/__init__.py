"""The verbs of `tmux-debug`: their registry and their parsers, and how a server answers them.

Most verbs are short names for tools of `debug`. Their flags, help and completion come from the
table of the tool's arguments, so that nothing about a tool is said twice. The words of a command
line come in; text for standard output, text for standard error and an exit status go out. Code that
talks to a caller raises CallerGoneError once the caller is gone or sends nonsense.
"""
