"""Sizes of terminals, in character cells."""

# A pane's, unless it is told otherwise.
COLUMNS, ROWS = 200, 50
# The largest that a call may ask for.
MAX_COLUMNS, MAX_ROWS = 500, 200
