"""Sizes of terminals, in character cells."""

# The size of a pane by default.
COLUMNS, ROWS = 200, 50
# The size of a session of the toolset `terminal` by default.
SESSION_COLUMNS, SESSION_ROWS = 120, 40
# The least columns and rows, and the most, that a call or an option may ask for.
MIN_SIZE = 2
MAX_COLUMNS, MAX_ROWS = 500, 200
