"""The running servers of this user, and where their sockets are.

Each server has a directory, mode 0700, in the first of `bases` that can be used::

    tmux-debug-4711-5f0c2a91/socket        a server that ends with its client, by its pid
    tmux-debug-8c1f5e0d93a7b642/socket     a detached server, by its configuration
    tmux-debug-.../server.json             what tells servers apart: see `Server`

`choosing` says which of them a caller reaches.
"""

import fcntl
import json
import os
import stat
from collections.abc import Iterable, Iterator

from tmux_debug_mcp.linux.gone import REMOVED, gone_directory

PREFIX = "tmux-debug-"
SOCKET = "socket"
# What a detached server writes into the pipe of the process that started it: it serves, or a faster
# one does.
READY = b"ready\n"
JOINED = b"joined\n"
FACTS = "server.json"
# The names of our tmux servers' directories begin like this.
_OTHER_PREFIX = "tmux-debug-mcp-"
_IN_PATH = f"/{PREFIX}".encode()
# In it, each server has a directory of its own; modes are checked.
_SHARED_BASE = "/tmp"  # noqa: S108
_WRITE = os.W_OK | os.X_OK
_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A socket's path can be at most 107 bytes long.
_MAX_BASE_CHARACTERS = 64
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._+-")
_MAX_FACTS_BYTES = 1 << 16
_MAX_ANCESTORS = 100


class VerbError(Exception):
    """Raised when a command can't be done; the text says why, and what to do."""


class Server:
    """A server, as the file in its directory describes it.

    Attributes:
        clients: The process ids of its MCP clients. Process 1 is never one: it adopts a server
            whose client has ended, and is the ancestor of every caller.
        cwd: The directory that its panes start in, which is gone or another one if its path no
            longer leads to `inode`.
        inode: What identifies that directory, as from `inode_of`.
        toolsets: The names of its toolsets, separated by commas.
        version: The version of the package that it runs.
        keep_s: Seconds that it goes on without a client; None if it ends with its client.
    """

    def __init__(self, directory: str, facts: dict[str, object]) -> None:
        self.directory = directory
        self.pid = int(str(facts["pid"]))
        clients = facts["clients"]
        self.clients = set(clients) - {0, 1} if isinstance(clients, list) else set()
        self.cwd = str(facts["cwd"])
        self.inode = str(facts["inode"])
        self.toolsets = str(facts["toolsets"])
        self.version = str(facts["version"])
        keep_s = facts["keep_s"]
        self.keep_s = None if keep_s is None else float(str(keep_s))

    @property
    def socket(self) -> str:
        """The path of its socket."""
        return f"{self.directory}/{SOCKET}"

    @property
    def place(self) -> str:
        """Its directory, in words that say so if that is gone."""
        gone = ", which is gone" if _is_in_removed_directory(self.pid) else ""
        return f"{self.cwd}{gone}"

    def __str__(self) -> str:
        kind = "detached" if self.keep_s is not None else "of an MCP client"
        return f"{self.pid}  {self.place}  ({kind}, toolsets {self.toolsets})"


def _is_in_removed_directory(pid: int) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/cwd").endswith(REMOVED)
    except OSError:
        return False


def bases(runtime: str, shared: str = _SHARED_BASE) -> list[str]:
    """Return the directories that may hold servers' directories, the best first, `shared` last.

    Not $TMPDIR: clients and shells often have different ones. `runtime` is $XDG_RUNTIME_DIR, ""
    if it is not set, here and below.
    """
    usable = [path for path in _private_bases(runtime) if os.access(path, _WRITE)]
    return list(dict.fromkeys([*usable, shared]))


def _private_bases(runtime: str) -> list[str]:
    paths = (runtime and os.path.normpath(runtime), f"/run/user/{os.getuid()}")
    return [path for path in paths if is_plain(path) and is_private(os.path.realpath(path))]


def is_plain(path: str) -> bool:
    """Return whether a directory may hold sockets: their paths are short, and no tmux formats."""
    return path.startswith("/") and len(path) <= _MAX_BASE_CHARACTERS and _PLAIN.issuperset(path)


def is_private(path: str) -> bool:
    """Return whether a path is a directory of this user that nobody else can enter."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return is_ours and not status.st_mode & 0o077


def running(runtime: str) -> list[Server]:
    """Return the servers of this user that live, sorted by pid.

    This includes servers with another $XDG_RUNTIME_DIR, unless they are in a container. Directories
    that others can write to are only listed if we have no other: they could be filled.
    """
    # A directory may have several paths, say through a link or with a slash at the end.
    own = _private_bases(runtime) or [_SHARED_BASE]
    listed = {os.path.realpath(path): path for path in own}
    others = []
    for directory in _bound():
        base = os.path.realpath(os.path.dirname(directory))
        if is_private(base):
            listed.setdefault(base, base)
        elif base not in listed:
            # A detached server has moved its directory since: see `listener.claim`.
            others += [directory, directory.rpartition("-")[0]]
    paths = [*_directories_in(listed.values()), *filter(is_private, others)]
    found = [read(path) for path in dict.fromkeys(paths) if is_held(path)]
    # One without a socket is about to end.
    listening = [server for server in found if server and os.path.lexists(server.socket)]
    return sorted(listening, key=lambda server: server.pid)


def directories(runtime: str) -> list[str]:
    """Return the directories of this user's servers, including killed ones."""
    return _directories_in(bases(runtime))


def _directories_in(places: Iterable[str]) -> list[str]:
    found = []
    for base in places:
        try:
            names = os.listdir(base)
        except OSError:
            continue
        for name in names:
            is_ours = name.startswith(PREFIX) and not name.startswith(_OTHER_PREFIX)
            if is_ours and is_private(f"{base}/{name}"):
                found.append(f"{base}/{name}")
    return found


def _bound() -> Iterator[str]:
    """Yield the directories in which somebody has bound sockets like ours. Source: proc(5)."""
    try:
        with open("/proc/net/unix", "rb") as file:
            lines = file.read().split(b"\n")
    except OSError:
        return
    end = f"/{SOCKET}".encode()
    for line in lines:
        if line.endswith(end) and _IN_PATH in line:
            path = line.split(None, 7)[-1].decode(errors="surrogateescape")
            if path.startswith("/"):
                yield os.path.dirname(path)


def read(directory: str) -> Server | None:
    """Return the server of a directory, None if no file there describes one."""
    try:
        fd = os.open(f"{directory}/{FACTS}", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            data = os.read(fd, _MAX_FACTS_BYTES)
        finally:
            os.close(fd)
        return Server(directory, json.loads(data))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def hold(directory: str, *, is_shared: bool = False) -> int:
    """Lock a directory as that of a living server; the kernel unlocks it when the server ends.

    A shared lock keeps the directory of a killed server from being removed; to others, the server
    is still a killed one. It is also what those have for a moment who look whether a server lives,
    so a server waits for its own lock.

    Return a descriptor, which the caller owns. Closing it unlocks.

    Raises:
        BlockingIOError: A living server has locked it, and the lock is to be shared.
        OSError: There is no such directory.
    """
    fd = os.open(directory, _OPEN_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB if is_shared else fcntl.LOCK_EX)
    except OSError:
        os.close(fd)
        raise
    return fd


def is_held(directory: str) -> bool:
    """Return whether the server of a directory lives, even in another pid namespace."""
    try:
        os.close(hold(directory, is_shared=True))
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def inode_of(directory: str | int) -> str:
    """Return what identifies a directory, by its path or open file; "" if it is gone.

    A directory that takes the path of a removed one is another one. It may get the same inode,
    unless somebody has the removed one open.
    """
    try:
        status = os.stat(directory)
    except OSError:
        return ""
    return f"{status.st_dev}:{status.st_ino}"


def current_directory() -> str:
    """Return the current directory; VerbError if it is gone."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise VerbError(
            f"The current directory is gone: {gone_directory()}. Run this from another one."
        ) from None


def ancestors(pid: int) -> list[int]:
    """Return a process and its ancestors, the nearest first. Source: proc(5).

    The last one is 0, which is no process, if these are all. Else one of them has ended, or there
    are more than 100, as only a process has that wants to hide one.
    """
    found = [pid]
    while found[-1] and len(found) <= _MAX_ANCESTORS:
        fields = _status(found[-1])
        if not fields:
            break
        found.append(int(fields[1]))
    return found


def parent(pid: int) -> int:
    """Return the parent of a process, 0 if there is none."""
    fields = _status(pid)
    return int(fields[1]) if fields else 0


def _status(pid: int) -> list[bytes]:
    """Return the fields of a process's status from its state on. Source: proc(5), `stat`."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        data = os.read(fd, 4096)
    except OSError:
        return []
    finally:
        os.close(fd)
    # The name of the program is in parentheses and may contain any characters.
    return data[data.rindex(b")") + 2 :].split()


def client_of(pid: int) -> int:
    """Return the process that is the MCP client of a server on standard input and output.

    That is the parent of the server, or of its launcher, such as `uvx`: a launcher shares the
    server's standard input, a client does not.
    """
    pipe = _standard_input(pid)
    client = parent(pid)
    while pipe and client > 1 and _standard_input(client) == pipe:
        client = parent(client)
    return client


def _standard_input(pid: int) -> str:
    """Return what identifies a process's standard input, "" if that is not a pipe or a socket."""
    try:
        target = os.readlink(f"/proc/{pid}/fd/0")
    except OSError:
        return ""
    return target if target.startswith(("pipe:", "socket:")) else ""
