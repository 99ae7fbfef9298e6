"""What a person looks at afterwards: the audit as a table and as a page, and replays of panes.

`audits` reads the records of audits, one line at a time. Everything that comes from a file is
untrusted: an audit, a capture or a log may hold anything that a pane has printed.
"""
