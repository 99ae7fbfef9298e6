"""Sizes of terminals, in character cells."""

# The size of a pane by default.
COLUMNS, ROWS = 200, 50
# The largest size that a call may ask for.
MAX_COLUMNS, MAX_ROWS = 500, 200
