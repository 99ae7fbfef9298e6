"""The sockets of running servers: how a caller finds and reaches one, and how a server serves it.

`tmux-debug` imports `servers` and `connection`, and must start about as fast as an interpreter. So
these import nothing else of this package, and only light modules of the standard library, not
`typing`, `dataclasses`, `socket` or `enum`. `listener` is the server's.
"""
