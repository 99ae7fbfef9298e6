"""MCP clients and their configuration files, in which our server gets an entry.

A client's file belongs to its user. `json_file` and `toml_file` change nothing but the entry, and
`editing` reads each result again; what they can't be sure of is left to the person. `storage` reads
and writes, `table` knows the clients. No module here starts a program.
"""
