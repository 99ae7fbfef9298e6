"""Stories: eight small broken systems, each debugged by the calls that a good agent would make.

`python -m stories` writes the snapshot of calls and bytes anew.
"""
