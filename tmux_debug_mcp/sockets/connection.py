"""A connection to a running server: one JSON object per line, in both directions.

The first line says what the connection is for, and the server's lines say what to do::

    > {"want": "verb", "words": ["list"], "cwd": "/me", "terminal": true, "out_terminal": false}
    < {"out": "..."}    {"err": "..."}    {"exit": 0}

    > {"want": "verb", "words": ["run", "make"], "environment": {"PATH": "/bin", ...}, ...}

    > {"want": "verb", "words": ["attach"], "person": "me at /dev/pts/3", "chooses": true,
       "size": "80x23", ...}               what their terminal has for a pane
    < {"choose": [{"id": "debug-1", ...}]}
    > {"pane": "debug-1"}
    < {"attach": ["tmux", ...]}            until its end
    > {"size": "120x39"}                   at its beginning, and when the terminal has another size
    > {"wish": "switch"}                   at its end, unless the caller hangs up: the person takes
                                           the keyboard or gives it back, wants to "scroll" back,
                                           or to "return" from there

    > {"want": "panes"}                    which is not a call: not on record, and not a use
    < {"panes": [{"id": "debug-1", ...}]}  the rows of the list, with the whole command as `line`,
                                           the `directory` that each was made in and its
                                           `inode`, and what a status line says as `shown`

    > {"want": "mcp", "environment": ...}  with standard input and output attached to it
    < {"exit": 0}                          when the client has closed its end

    > {"want": "keep", "keep": "2h"}       how long to go on without use; "" changes nothing
    < {"pid": 4711, "changed": true}

    > {"want": "stop"}                     it closes the connection at its end

The server closes the connection of a caller that says nothing, or nothing that makes sense.
"""

import fcntl
import json
import os
import socket
import struct
import termios
from collections.abc import Iterator, Mapping, Sequence

from .servers import VerbError, is_private, read

_RECEIVE_BYTES = 1 << 16
# struct ucred: pid, uid, gid. Source: unix(7), SO_PEERCRED.
_CREDENTIALS_BYTES = 12
# A server takes a connection, reads what is sent and lists its panes at once, unless it is stopped.
_ANSWER_S = 5.0
# struct timeval
_TIME = struct.Struct("ll")


class ServerGoneError(VerbError):
    """Raised when no server of ours answers, or when it has ended."""


def peer_of(connected: socket.socket) -> tuple[int, int]:
    """Return the process id and the user id of the other side of a connection.

    For a listener, they are from the moment when it began to listen. The process id is 0 if the
    process is in a pid namespace that we can't see.
    """
    data = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS_BYTES)
    pid, uid, _gid = memoryview(data).cast("i")
    return pid, uid


class Connection:
    """A connection to a server of this user. Closing it cancels what the server still does for it.

    Other users' servers get nothing: in /tmp, anybody can make a directory with the name of ours.

    Attributes:
        directory: The directory of the server.

    Raises:
        ServerGoneError: Nobody listens there, or another user does, or the server is stopped and
            has too many callers already.
    """

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._received = b""
        self.directory = os.path.dirname(path)
        if not is_private(self.directory):
            raise ServerGoneError(f"The directory of '{path}' is not private to you.")
        try:
            # With a time limit of Python's, connecting would not wait for a busy server at all.
            self._limit_writes(_ANSWER_S)
            self._socket.connect(path)
            self._limit_writes(0.0)
        except OSError as error:
            if isinstance(error, BlockingIOError):
                raise self._silent() from error
            raise ServerGoneError(f"The server at {path} does not answer.") from error
        self._socket.settimeout(_ANSWER_S)
        self._is_limited = False
        _, uid = peer_of(self._socket)
        if uid != os.geteuid():
            raise ServerGoneError(f"The server at '{path}' is another user's.")

    def __del__(self) -> None:
        # Python would say so, where the environment has PYTHONDEVMODE or PYTHONWARNINGS.
        self.close()

    def _limit_writes(self, seconds: float) -> None:
        time = _TIME.pack(int(seconds), int(seconds % 1 * 1e6))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, time)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def limit(self, seconds: float) -> None:
        """Make every wait for the server end after a time, even once it has read what was sent."""
        self._socket.settimeout(seconds)
        self._is_limited = True

    def hang_up(self) -> None:
        """Say that nothing more will come, which cancels a verb. Its last messages still arrive."""
        self._socket.shutdown(socket.SHUT_WR)

    def send(self, message: dict[str, object], fds: Sequence[int] = ()) -> None:
        """Send a message, and file descriptors with it.

        If the server has closed the connection, `messages` still yields why.

        Raises:
            ServerGoneError: The server has no room for it, and reads nothing.
        """
        data = json.dumps(message).encode() + b"\n"
        try:
            if fds:
                socket.send_fds(self._socket, [data[:1]], fds, socket.MSG_NOSIGNAL)
                data = data[1:]
            self._socket.sendall(data, socket.MSG_NOSIGNAL)
        except ConnectionError:
            return
        except TimeoutError:
            raise self._silent() from None

    def messages(self) -> Iterator[dict[str, object]]:
        """Yield the server's messages until it closes the connection.

        It may take as long as it likes to answer, unless there is a `limit`, but not to read.

        Raises:
            ServerGoneError: It does not read what was sent, or the limit is over.
        """
        while True:
            line, separator, rest = self._received.partition(b"\n")
            if separator:
                self._received = rest
                yield json.loads(line)
                continue
            try:
                data = self._socket.recv(_RECEIVE_BYTES)
            except ConnectionError:
                return
            except TimeoutError:
                if self._is_limited or self._has_unread():
                    raise self._silent() from None
                self._socket.settimeout(None)
                continue
            if not data:
                return
            self._received += data

    def answers(self) -> Iterator[dict[str, object]]:
        """Yield the server's messages, as `messages` does, but raise what it refuses with.

        Raises:
            VerbError: What it says on standard error.
        """
        for message in self.messages():
            if "err" in message:
                raise VerbError(str(message["err"]).removeprefix("tmux-debug: ").rstrip("\n"))
            yield message

    def _has_unread(self) -> bool:
        """Return whether the server has yet to read what was sent. Source: Linux, `unix_ioctl`."""
        return any(fcntl.ioctl(self._socket, termios.TIOCOUTQ, bytes(4)))

    def _silent(self) -> ServerGoneError:
        """Return what to raise when the server does not answer."""
        server = read(self.directory)
        if server is None:
            return ServerGoneError(f"The server at {self.directory} does not answer.")
        return ServerGoneError(
            f"Server {server.pid} does not answer. If it was stopped (SIGSTOP), let it go on: kill "
            f"-CONT {server.pid}. Then, tmux-debug --server {server.pid} stop can end it."
        )


def sent_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment as it is sent: a byte is a character, as in Latin-1."""

    def sent(text: str) -> str:
        return os.fsencode(text).decode("latin-1")

    return {sent(name): sent(value) for name, value in environ.items()}


def panes_of(path: str) -> list[dict[str, object]]:
    """Return the rows of a server's panes.

    Raises:
        ServerGoneError: It has just ended, or does not answer.
    """
    connection = Connection(path)
    try:
        connection.limit(_ANSWER_S)
        connection.send({"want": "panes"})
        for message in connection.messages():
            panes = message.get("panes")
            if isinstance(panes, list):
                return panes
    finally:
        connection.close()
    raise ServerGoneError("The server has ended.")
