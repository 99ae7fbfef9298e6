"""Everything that only Linux has: /proc, terminal devices, file events, the supervisor.

Standard library only, and no other package of ours. Functions here ask the kernel about a process,
a terminal or a file, and return what it says. They know nothing of panes and decide nothing.
"""
