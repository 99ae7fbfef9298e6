"""What panes have printed: a log for each, read as text, searched, matched, kept after the end.

`log` is the file, `timing` when it grew; `events` wakes who waits for it, `retention` trims it.
`reading` (as text, in any direction), `searching`, `pane_text` and `matching` (what is new, for
waits) read it; `positioning` finds the state of a terminal at a cursor. `archive` keeps logs for
later servers. `excerpts` cuts what is too long for a result. A log knows cursors and terminal
sizes, but not panes or processes.
"""
