"""Limits for the text of a pane that a tool returns, where the tool has none of its own."""

MAX_TEXT_CHARACTERS = 40_000
MAX_TEXT_LINES = 1000
