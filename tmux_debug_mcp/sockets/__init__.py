"""The sockets of running servers: how a caller finds and reaches one, and how a server serves it.

`choosing` says which server a caller reaches, `servers` where they are, and `connection` what is
said. `tmux-debug` imports these three, and must start about as fast as an interpreter, so they
import only light modules, and not `dataclasses`. `listener` and `inside` are the server's.
"""
