"""Everything that only Linux has: /proc, terminal devices, file events, the supervisor.

Standard library only, and nothing of ours but this folder. Functions here ask the kernel about a
process, a terminal or a file and return what it says; they know of no pane and decide nothing.
"""
