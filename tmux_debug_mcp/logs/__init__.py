"""What panes have printed: a log for each, read as text, searched, matched, kept after the end.

`log` is the file, `retention` trims it, `subscriptions` wakes who waits for it. It is read by
`reading` (forward), `ends` (backward), `abridging` (without the middle), `raw`, `searching` and
`matching`; `positioning` has the state of a terminal at a cursor, `pacing` leaves others time.
`archive` and `index` keep logs for later servers. `excerpts` cuts what is too long for a result. A
log knows cursors and terminal sizes, but not panes or processes.
"""
