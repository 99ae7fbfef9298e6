"""What panes have printed: a log for each, read as text, searched, matched, kept after the end.

`log` is the file, `retention` trims it, `subscriptions` wakes who waits for it. `reading` (forward),
`ends` (backward), `abridging` (without the middle), `raw`, `searching` and `matching` read it;
`positioning` has the state of a terminal at a cursor, and `pacing` leaves time to other calls.
`archive` and `index` keep logs for later servers. `excerpts` cuts what is too long for a result. A
log knows cursors and terminal sizes, but not panes or processes.
"""
