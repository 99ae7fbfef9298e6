"""MCP clients and their configuration files, into which we merge our server.

A client's file belongs to its user: comments, order and other servers stay. The modules `jsonc`,
`toml_text` and `yaml_text` change texts and do no I/O; `merging` checks their results, `files`
writes them, `table` knows the clients. No module here starts a program.
"""
