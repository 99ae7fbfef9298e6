"""Findings about this machine: whether the server works here, and what to do if it doesn't.

A server is started for real, as clients would start it, and ended. Nothing else is changed, and no
client or model is started.
"""
