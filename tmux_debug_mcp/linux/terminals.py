"""Terminal devices: their modes, their size and what nobody has read of them yet."""

import contextlib
import fcntl
import os
import struct
import termios
from collections.abc import Iterator
from typing import NamedTuple


class Modes(NamedTuple):
    """What a terminal does with what is typed.

    Attributes:
        is_canonical: It hands over whole lines.
        echoes: It shows what is typed.
        is_raw: Signal keys, the quoting key or Enter's line feed are switched off too, as line editors have it.
        has_signal_keys: C-c is an interrupt and not a key that the program reads.
        polls: To read it returns at once or after a while, also where nothing was typed.
        unread_bytes: How much that was typed nobody has read yet, as far as it was handed over.
    """

    is_canonical: bool
    echoes: bool
    is_raw: bool
    has_signal_keys: bool
    unread_bytes: int
    polls: bool = False


def modes(pid: int) -> Modes | None:
    """Return the modes of the terminal that is a process's standard input, or None when it is gone."""
    return modes_at(f"/proc/{pid}/fd/0")


def modes_at(path: str) -> Modes | None:
    """Return the modes of a terminal, or None where it can't be opened."""
    with _terminal_at(path) as fd:
        if fd is None:
            return None
        try:
            iflag, _, _, lflag, _, _, characters = termios.tcgetattr(fd)
            unread = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))[0]
        except (termios.error, OSError):
            return None
    has_signal_keys = bool(lflag & termios.ISIG)
    is_raw = characters[termios.VLNEXT] == b"\0" or not has_signal_keys or not iflag & termios.ICRNL
    is_canonical = bool(lflag & termios.ICANON)
    polls = not is_canonical and characters[termios.VMIN] in (0, b"\0")
    return Modes(is_canonical, bool(lflag & termios.ECHO), is_raw, has_signal_keys, unread, polls)


def size(pid: int) -> tuple[int, int] | None:
    """Return the columns and rows of the terminal that is a process's standard input, or None when it is gone."""
    with _terminal(pid) as fd, contextlib.suppress(OSError):
        if fd is not None:
            rows, columns, _, _ = struct.unpack("HHHH", fcntl.ioctl(fd, termios.TIOCGWINSZ, bytes(8)))
            return columns, rows
    return None


def restart_output(pid: int) -> None:
    """Have the terminal of a session leader print again after Ctrl-S."""
    with _terminal(pid) as fd, contextlib.suppress(termios.error):
        if fd is not None:
            attributes = termios.tcgetattr(fd)
            attributes[0] &= ~termios.IXON  # without flow control, the kernel lets go what it has held
            termios.tcsetattr(fd, termios.TCSANOW, attributes)


def restore(pid: int) -> bool:
    """Have a raw terminal of a session leader hand over lines, echo and heed keys again; tell whether it was one."""
    with _terminal(pid) as fd, contextlib.suppress(termios.error):
        if fd is not None and not (termios.tcgetattr(fd)[3] & termios.ICANON):
            attributes = termios.tcgetattr(fd)
            attributes[0] |= termios.ICRNL
            attributes[1] |= termios.OPOST
            attributes[3] |= termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN
            termios.tcsetattr(fd, termios.TCSAFLUSH, attributes)
            return True
    return False


def write(pid: int, data: bytes) -> None:
    """Write to the terminal of a session leader."""
    with _terminal(pid) as fd, contextlib.suppress(OSError):
        if fd is not None:
            os.write(fd, data)


def _terminal(pid: int) -> contextlib.AbstractContextManager[int | None]:
    return _terminal_at(f"/proc/{pid}/fd/0")


@contextlib.contextmanager
def _terminal_at(path: str) -> Iterator[int | None]:
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield fd if os.isatty(fd) else None
    finally:
        os.close(fd)
