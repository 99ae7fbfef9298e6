"""MCP clients, and their configuration files, into which our server is merged.

A client's file is its user's: comments, order and other servers stay as they were.
"""
