"""A comparison of tools that give agents a terminal: `./dev compare`.

Small truths that such a tool has to hold, each tried with each tool in a process and a directory
of its own. `docs/comparison.md` has the result.
"""
