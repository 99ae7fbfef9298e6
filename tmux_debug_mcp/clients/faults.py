"""What is wrong with a client's file, with the place in it."""


class FormatError(Exception):
    """Raised when a text can't be read, or can't be changed without losing something.

    Args:
        reason: What is wrong, as a predicate: "has no value here".
        line: The line, from 1; 0 where the place is not known.
        column: The column, from 1, in characters.
    """

    def __init__(self, reason: str, line: int = 0, column: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.column = column

    def __str__(self) -> str:
        """Return the reason, with the place behind it."""
        if not self.line:
            return self.reason
        return f"{self.reason} (line {self.line}, column {self.column})"


def at(text: str, position: int, reason: str) -> FormatError:
    """Return the error for a position in a text, an offset in characters."""
    line_start = text.rfind("\n", 0, position) + 1
    return FormatError(reason, text.count("\n", 0, position) + 1, position - line_start + 1)
