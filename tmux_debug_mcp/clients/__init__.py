"""MCP clients, and their configuration files, into which our server is merged.

A client's file is its user's: comments, order and other servers stay as they were. The modules
`jsonc`, `toml_text` and `yaml_text` change texts and do no I/O; `merging` checks what they made,
`files` writes it, `table` knows the clients. No module here starts a program.
"""
