"""What panes have printed: a log for each, read as text, searched, matched, kept after the end.

`log` is the file, `retention` trims it, `subscriptions` wakes who waits for it; `reading`, `raw`,
`searching` and `matching` read it; `archive` and `index` keep it for later servers; `excerpts` cuts
what is too long for an answer. A log knows cursors and terminal sizes, but not panes or processes.
"""
