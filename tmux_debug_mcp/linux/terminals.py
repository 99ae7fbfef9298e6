"""Terminal devices: their modes, their size, and input that nobody has read yet.

Sources: termios(3), ioctl_tty(2). A function that takes a pid means the terminal that is the
process's standard input. Nothing here makes a terminal our controlling terminal.
"""

import contextlib
import fcntl
import os
import select
import struct
import termios
from collections.abc import Iterator
from typing import Any, NamedTuple

# Indexes into what termios.tcgetattr() returns.
_IFLAG, _OFLAG, _LFLAG, _CC = 0, 1, 3, 6
# In canonical mode, what is longer loses its rest. Source: termios(3), Canonical mode.
MAX_LINE_BYTES = 4095
# The value of a special character that is disabled, _POSIX_VDISABLE.
_DISABLED = b"\0"


class Modes(NamedTuple):
    """What a terminal does with its input.

    Attributes:
        is_canonical: Programs read whole lines (ICANON).
        echoes: It prints what is typed (ECHO).
        is_raw: Signal keys, the quoting key (VLNEXT) or the translation of Enter to a line feed
            (ICRNL) are off, as line editors switch them.
        has_signal_keys: C-c sends an interrupt, and is not a key that the program reads (ISIG).
        unread_bytes: Bytes that a program could read now (FIONREAD).
        polls: Reading returns without input, at once or after a time (VMIN is 0).
        special_characters: The bytes that the terminal acts upon instead of passing them on.
    """

    is_canonical: bool
    echoes: bool
    is_raw: bool
    has_signal_keys: bool
    unread_bytes: int
    polls: bool = False
    special_characters: bytes = b""

    @property
    def hides_lines(self) -> bool:
        """Whether a line is typed without echo, as only prompts for secrets want it."""
        return self.is_canonical and not self.echoes

    @property
    def passes_every_key(self) -> bool:
        """Whether the program reads every key itself, even C-c, as only programs that draw want."""
        return not self.is_canonical and not self.has_signal_keys


def ring(path: bytes) -> None:
    """Ring the bell of the terminal at a path; OSError if it is gone, or takes nothing now."""
    fd = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.write(fd, b"\a")
    finally:
        os.close(fd)


def modes(pid: int) -> Modes | None:
    """Return the modes of a process's terminal, or None if there is none."""
    return modes_at(f"/proc/{pid}/fd/0")


def modes_at(path: str) -> Modes | None:
    """Return the modes of the terminal at a path, or None if it can't be opened."""
    with _open_at(path) as fd:
        if fd is None:
            return None
        try:
            attributes = termios.tcgetattr(fd)
            [unread_bytes] = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))
        except (termios.error, OSError):
            return None
    lflag, characters = attributes[_LFLAG], attributes[_CC]
    is_canonical = bool(lflag & termios.ICANON)
    has_signal_keys = bool(lflag & termios.ISIG)
    has_quoting_key = characters[termios.VLNEXT] != _DISABLED
    translates_enter = bool(attributes[_IFLAG] & termios.ICRNL)
    return Modes(
        is_canonical=is_canonical,
        echoes=bool(lflag & termios.ECHO),
        is_raw=not (has_signal_keys and has_quoting_key and translates_enter),
        has_signal_keys=has_signal_keys,
        unread_bytes=unread_bytes,
        # Python returns VMIN as a number in non-canonical mode only.
        polls=not is_canonical and characters[termios.VMIN] in (0, b"\0"),
        special_characters=_special_characters(attributes),
    )


def _special_characters(attributes: list[Any]) -> bytes:
    """Return the special characters that are in force. Line feed, which always is, is left out."""
    iflag, lflag, characters = attributes[_IFLAG], attributes[_LFLAG], attributes[_CC]
    indexes: list[int] = []
    if lflag & termios.ISIG:
        indexes += [termios.VINTR, termios.VQUIT, termios.VSUSP]
    if iflag & termios.IXON:
        indexes += [termios.VSTART, termios.VSTOP]
    if lflag & termios.ICANON:
        indexes += [termios.VEOF, termios.VEOL, termios.VERASE, termios.VKILL]
        if lflag & termios.IEXTEN:
            indexes += [termios.VEOL2, termios.VWERASE, termios.VREPRINT, termios.VLNEXT]
    return b"".join(characters[index] for index in indexes).replace(_DISABLED, b"")


def size(pid: int) -> tuple[int, int] | None:
    """Return the columns and rows of a process's terminal, or None if there is none."""
    with _open(pid) as fd, contextlib.suppress(OSError):
        if fd is not None:
            winsize = fcntl.ioctl(fd, termios.TIOCGWINSZ, bytes(8))
            rows, columns, _, _ = struct.unpack("HHHH", winsize)
            return columns, rows
    return None


def device(tty: int) -> int:
    """Convert the tty_nr of /proc/PID/stat to a device number, as os.stat() returns it.

    Source: proc(5): the minor number is in bits 31 to 20 and 7 to 0, the major number in 15 to 8.
    """
    major = tty >> 8 & 0xFFF
    minor = tty & 0xFF | tty >> 12 & 0xFFF00
    return os.makedev(major, minor)


def is_at(path: str, tty: int) -> bool:
    """Tell whether the terminal at a path like /dev/pts/3 has this tty_nr."""
    try:
        return os.stat(path).st_rdev == device(tty)
    except OSError:
        return False


def is_output_stopped(pid: int) -> bool:
    """Tell whether programs can't write now to a terminal on which C-s stops output.

    Briefly true also while tmux is late in reading a flood.
    """
    with _open(pid) as fd, contextlib.suppress(termios.error):
        if fd is not None and termios.tcgetattr(fd)[_IFLAG] & termios.IXON:
            poll = select.poll()
            poll.register(fd, select.POLLOUT)
            return not poll.poll(0)
    return False


def restart_output(pid: int) -> None:
    """Resume the output that C-s has stopped on a session leader's terminal."""
    with _open(pid) as fd, contextlib.suppress(termios.error):
        if fd is not None:
            attributes = termios.tcgetattr(fd)
            # When flow control goes off, the kernel resumes stopped output.
            attributes[_IFLAG] &= ~termios.IXON
            termios.tcsetattr(fd, termios.TCSANOW, attributes)


def restore(pid: int) -> bool:
    """Put a session leader's terminal back into canonical mode, with echo and signal keys.

    Unread input is dropped. Returns False if it was in that mode already, or there is no terminal.
    """
    with _open(pid) as fd, contextlib.suppress(termios.error):
        if fd is None:
            return False
        attributes = termios.tcgetattr(fd)
        if attributes[_LFLAG] & termios.ICANON:
            return False
        attributes[_IFLAG] |= termios.ICRNL
        attributes[_OFLAG] |= termios.OPOST
        attributes[_LFLAG] |= termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN
        termios.tcsetattr(fd, termios.TCSAFLUSH, attributes)
        return True
    return False


def rouse_readers(path: str) -> None:
    """Wake the threads that wait for the terminal at a path, if it hides what is typed.

    They find nothing to read and go on waiting. The kernel wakes them whenever the modes are set,
    even if nothing changes. Source: n_tty_set_termios() in drivers/tty/n_tty.c.
    """
    with _open_at(path) as fd, contextlib.suppress(termios.error):
        if fd is not None:
            attributes = termios.tcgetattr(fd)
            if attributes[_LFLAG] & (termios.ICANON | termios.ECHO) == termios.ICANON:
                termios.tcsetattr(fd, termios.TCSANOW, attributes)


def write(pid: int, data: bytes) -> None:
    """Print bytes on a session leader's terminal, as many as it takes without waiting."""
    with _open(pid) as fd, contextlib.suppress(OSError):
        if fd is not None and os.isatty(fd):
            os.write(fd, data)


def _open(pid: int) -> contextlib.AbstractContextManager[int | None]:
    return _open_at(f"/proc/{pid}/fd/0")


@contextlib.contextmanager
def _open_at(path: str) -> Iterator[int | None]:
    """Open a terminal for the block; yield None if it is gone. It may be another kind of file."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)
