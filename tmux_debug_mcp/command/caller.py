"""What verbs do in the caller's process: read its flags and its directory, and print."""

import os
import sys
from collections.abc import Container

from tmux_debug_mcp.sockets.servers import CommandError, current_directory
from tmux_debug_mcp.verbs.registry import VERBS

_ERROR = 2  # the file descriptor of standard error


def flags(name: str, words: list[str], known: Container[str] = ()) -> list[str]:
    """Return the flags of a verb that takes no values. argparse would take longer than the verb."""
    if any(word not in known for word in words):
        from tmux_debug_mcp.verbs.parsing import parser_of  # noqa: PLC0415  it says what is wrong

        parser_of(VERBS[name]).parse_args(words)
    return words


def directory() -> str:
    """Return the current directory; CommandError if it is gone, or its path is not UTF-8."""
    directory = current_directory()
    try:
        directory.encode()
    except UnicodeEncodeError:
        text = "The path of the current directory is not UTF-8. Run this from another one."
        raise CommandError(text) from None
    return directory


def open_standard_streams() -> set[int]:
    """Open the closed ones of the standard streams, so that no file of ours gets their numbers.

    Writing to standard output still fails, as `write` does. Return the closed ones.
    """
    closed = {fd for fd in (0, 1, 2) if not os.path.exists(fd)}
    for _ in closed:
        os.open(os.devnull, os.O_RDONLY)  # it gets the lowest free number
    # Python has made no streams of them.
    if 1 in closed:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if _ERROR in closed:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    return closed


def write(fd: int, text: object) -> None:
    """Write a text as UTF-8, whatever the locale is.

    Raises:
        CommandError: Standard output can't be written. If standard error can't, the text is lost.
    """
    data = str(text).encode()
    try:
        while data:
            data = data[os.write(fd, data) :]
    except OSError as error:
        if fd == 1:
            raise unwritable(error) from None


def unwritable(error: OSError) -> CommandError:
    """Return what to raise when standard output can't be written."""
    return CommandError(f"The output can't be written: {error.strerror}.")
