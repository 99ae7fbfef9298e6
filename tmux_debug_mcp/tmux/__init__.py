"""tmux: its control mode, its targets, our own server and the user's.

`control_mode`, `targets`, `text` and `versions` do no I/O. `client` is one connection,
`supervisor` the process that owns a server of ours, `host` starts and ends it. `users_server` is a
server that is not ours. We give tmux ids, never names. Whatever asks it raises TmuxStuckError if it
doesn't answer. Nothing here knows our panes, their logs or MCP.
"""
