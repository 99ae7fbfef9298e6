"""What commands do in the caller's process: read its directory, run functions, and print."""

import io
import os
import sys

from tmux_debug_mcp.sockets.servers import VerbError, current_directory
from tmux_debug_mcp.verbs.registry import loaded
from tmux_debug_mcp.vt.printable import visible


def directory() -> str:
    """Return the current directory; VerbError if it is gone, or its path is not UTF-8."""
    directory = current_directory()
    try:
        directory.encode()
    except UnicodeEncodeError:
        text = "The path of the current directory is not UTF-8. Run this from another one."
        raise VerbError(text) from None
    return directory


def open_standard_streams() -> set[int]:
    """Open the closed ones of the standard streams, so that no file of ours gets their numbers.

    Writing to standard output still fails, as `write` does. Return the closed ones.
    """
    closed = {fd for fd in (0, 1, 2) if not os.path.exists(fd)}
    for _ in closed:
        os.open(os.devnull, os.O_RDONLY)  # it gets the lowest free number
    return closed


def write(fd: int, text: object) -> None:
    """Write a text as UTF-8, whatever the locale is; or bytes.

    Raises:
        VerbError: Standard output can't be written. If standard error can't, the text is lost.
    """
    data = text if isinstance(text, bytes) else str(text).encode()
    try:
        while data:
            data = data[os.write(fd, data) :]
    except OSError as error:
        if fd == 1:
            raise VerbError(f"The output can't be written: {error.strerror}.") from None


def complain(program: str, error: Exception) -> None:
    """Print why a program can't do what it was asked for."""
    # It may contain words, paths and servers' directories.
    shown = visible(str(error), keep="\n")
    write(2, f"{program}: {shown}\n")


def run_here(handler: str, words: list[str], wanted: str = "") -> int:
    """Run a function in this process, and return its exit status; VerbError if it can't be done.

    Args:
        handler: `module:function`, which gets the words and the environment.
        words: What follows the verb.
        wanted: The server that `--server` names.
    """
    environ = dict(os.environ)
    if wanted:
        environ["TMUX_DEBUG_SERVER"] = wanted
    _print_by_write()
    try:
        status = loaded(handler)(words, environ)
        sys.stdout.flush()  # `os._exit` won't
    except Exception as error:
        # Importing it takes as long as `ps`.
        from tmux_debug_mcp.errors import StartError, first_of  # noqa: PLC0415

        cause = first_of(error)
        if isinstance(cause, StartError | VerbError):
            raise VerbError(str(cause)) from error
        raise
    return int(status)


def _print_by_write() -> None:
    """Have `write` write what Python prints. Standard output is to be flushed in the end.

    What can't be written in the encoding of the locale is escaped.
    """
    encoding = sys.stdout.encoding if sys.stdout else None  # there is none where it is closed
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(
            io.BufferedWriter(_Stream(fd)), encoding, "backslashreplace", line_buffering=by_lines
        )
        for fd, by_lines in ((1, os.isatty(1)), (2, True))
    )


class _Stream(io.RawIOBase):
    """What Python prints to a file descriptor."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return os.isatty(self._fd)

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        written = bytes(data)  # type: ignore[call-overload]  # a buffer
        write(self._fd, written)
        return len(written)
