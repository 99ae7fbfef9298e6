"""What a person looks at afterwards: the audit as a table and as a page, and replays of panes.

- `audits` reads records, one line at a time; `filters` chooses among them, `phrases` tells a call.
- `audit_verb` shows them with `table`, or writes a `page`.
- `replay_verb` shows a pane as it was: `logs` finds its log, `replaying` has a terminal show it.

What a person asks for in vain, or in words that have no meaning, is a CommandError.

Everything that comes from a file is untrusted: an audit, a capture or a log may hold anything that
a pane has printed.
"""
