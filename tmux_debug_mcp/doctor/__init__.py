"""Findings about this machine: what the server needs here, and what to do if it is missing.

Looking changes nothing, and starts no model.
"""
