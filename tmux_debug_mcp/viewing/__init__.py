"""What a person looks at afterwards: the audit as a table and as a page, and replays of panes.

- `audits` reads records line by line, `filters` chooses among them, `phrases` describes a call.
- `audit_verb` prints them with `outputs`, or writes a `page`.
- `replay_verb` shows a pane as it was: `logs` finds its log, `replaying` feeds it to a terminal.

A request that can't be understood or met is a VerbError.

Whatever comes from a file is untrusted: an audit, a capture or a log may hold anything that a pane
has printed.
"""
