"""The sockets of running servers: how a caller finds and reaches one, and how a server serves it.

`servers` and `connection` are imported by `tmux-debug`, which has to start in about the time of an
interpreter. So they import the lightest modules of the standard library and nothing else of this
package, `typing`, `dataclasses`, `socket` and `enum` not among them. `listener` is the server's.
"""
