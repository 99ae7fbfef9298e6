"""The running servers of this user: where their sockets are, and which one a caller means.

Each server has a directory, mode 0700, in the first of `bases` that can be used::

    tmux-debug-4711-5f0c2a91/socket        a server that ends with its client, by its pid
    tmux-debug-8c1f5e0d93a7b642/socket     a detached server, by its configuration
    tmux-debug-.../server.json             what tells servers apart: see `Server`
"""

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping

from tmux_debug_mcp.own_command import own_command

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
_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A socket's path can be at most 107 bytes long.
_MAX_BASE_CHARACTERS = 64
_MAX_FACTS_BYTES = 1 << 16
_MAX_ANCESTORS = 100
# Why a caller may mean a server that serves another directory.
ONLY_ONE = "it is your only detached one"
HAS_PANE = "it has a running pane with that name"
# How many other servers an error names, on one line.
_MAX_OTHERS = 4


class CommandError(Exception):
    """Raised when a command can't be done; the text says why, and what to do."""


class NoServerError(CommandError):
    """Raised when there is no server that the caller can mean.

    Attributes:
        others: A line that names others, "" if there are none.
    """

    def __init__(self, others: str) -> None:
        start = f"{own_command(is_for_here=True)} start"
        super().__init__(f"You have no server here. Start one: {start}{others}")
        self.others = others


class WhichServerError(CommandError):
    """Raised when the named server does not run, or when the caller can mean several."""


class Server:
    """A server, as the file in its directory describes it.

    Attributes:
        clients: The process ids of its MCP clients. Process 1 is never one: it adopts a server
            whose client has ended, and is the ancestor of every caller.
        cwd: The directory that its panes start in.
        toolsets: The names of its toolsets, separated by commas.
        version: The version of the package that it runs.
        keep_s: Seconds that it goes on without a client; None if it ends with its client.
        starter: The shell whose command started a detached one, as from `identity`; "" if that is
            not known.
    """

    def __init__(self, directory: str, facts: dict[str, object]) -> None:
        self.directory = directory
        self.pid = int(str(facts["pid"]))
        clients = facts["clients"]
        self.clients = set(clients) - {0, 1} if isinstance(clients, list) else set()
        self.cwd = str(facts["cwd"])
        self.toolsets = str(facts["toolsets"])
        self.version = str(facts["version"])
        keep_s = facts["keep_s"]
        self.keep_s = None if keep_s is None else float(str(keep_s))
        self.starter = str(facts.get("starter", ""))

    @property
    def socket(self) -> str:
        """The path of its socket."""
        return f"{self.directory}/{SOCKET}"

    def __str__(self) -> str:
        kind = "detached" if self.keep_s is not None else "of an MCP client"
        return f"{self.pid}  {self.cwd}  ({kind}, toolsets {self.toolsets})"


def bases(runtime: str) -> list[str]:
    """Return the directories that may hold servers' directories, the best first.

    Not $TMPDIR: clients and shells often have different ones. `runtime` is $XDG_RUNTIME_DIR, ""
    if it is not set, here and below.
    """
    paths = [os.path.normpath(runtime) if runtime else "", f"/run/user/{os.getuid()}"]
    usable = [
        path
        for path in paths
        if path.startswith("/") and len(path) <= _MAX_BASE_CHARACTERS and is_private(path)
    ]
    return list(dict.fromkeys([*usable, "/tmp"]))  # noqa: S108  as tmux has it; modes are checked


def is_private(path: str) -> bool:
    """Return whether a path is a directory of this user that nobody else can enter."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return is_ours and not status.st_mode & 0o077


def running(runtime: str) -> list[Server]:
    """Return the servers of this user, sorted by pid.

    This includes servers with another $XDG_RUNTIME_DIR, unless they are in a container.
    """
    # A directory may have several paths, say through a link or with a slash at the end.
    places = {os.path.realpath(path): path for path in [*_bases_in_use(), *bases(runtime)]}
    found = [server for server in map(read, _directories_in(places.values())) if server]
    # With a single one, the caller's connection shows whether it lives.
    if len(found) > 1:
        found = [server for server in found if is_held(server.directory)]
    return sorted(found, key=lambda server: server.pid)


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


def _bases_in_use() -> Iterator[str]:
    """Yield the directories in which somebody has bound sockets like ours. Source: proc(5)."""
    try:
        with open("/proc/net/unix", "rb") as file:
            lines = file.read().split(b"\n")
    except OSError:
        return
    end = f"/{SOCKET}".encode()
    for line in lines:
        if line.endswith(end) and _IN_PATH in line:
            # A detached server has moved its own directory since, but not to another base.
            path = line.split(None, 7)[-1].decode(errors="surrogateescape")
            if path.startswith("/"):
                yield os.path.dirname(os.path.dirname(path))


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
    is still a killed one.

    Return a descriptor, which the caller owns. Closing it unlocks.

    Raises:
        BlockingIOError: Another process has locked it, such as a living server.
        OSError: There is no such directory.
    """
    import fcntl  # noqa: PLC0415  a verb needs it only to choose from several servers

    fd = os.open(directory, _OPEN_DIRECTORY)
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
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


class Surroundings:
    """Where a caller is, which determines its server.

    Attributes:
        wanted: The named server: a pid or a directory, as for `--server`; "" for none.
        pid: The process that calls.
        cwd: Its directory.
        runtime: $XDG_RUNTIME_DIR.
    """

    def __init__(self, wanted: str, pid: int, cwd: str, runtime: str) -> None:
        self.wanted = wanted
        self.pid = pid
        self.cwd = cwd
        self.runtime = runtime


def surroundings(environ: Mapping[str, str]) -> Surroundings:
    """Return where this process is. It names a server by TMUX_DEBUG_SERVER."""
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        cwd = ""
    wanted, runtime = environ.get("TMUX_DEBUG_SERVER", ""), environ.get("XDG_RUNTIME_DIR", "")
    return Surroundings(wanted, os.getpid(), cwd, runtime)


def choose(
    servers: list[Server], caller: Surroundings, has_pane: Callable[[Server], bool] | None = None
) -> Server:
    """Return the server that a caller means, as `meant` decides.

    Raises:
        WhichServerError: The named one does not run, or the caller can mean several.
        NoServerError: There is none that the caller can mean.
    """
    found, _ = meant(servers, caller, has_pane)
    return found


def meant(
    servers: list[Server], caller: Surroundings, has_pane: Callable[[Server], bool] | None = None
) -> tuple[Server, str]:
    """Return the server that a caller means, and why, in words that follow "because".

    It is the first of these that exists:

    1. The named one.
    2. The one that is, or whose client is, the nearest ancestor of the caller. So a pane finds its
       own server, and an agent's shell finds the agent's.
    3. The detached one of the caller's directory.
    4. Of the detached ones that are where the caller's own would be, the only one that an ancestor
       of the caller started (such as a script that has changed its directory since), or else the
       only one without a client.

    Of several that fit, it is the one with the pane that the caller names, or the one of the
    caller's directory: some clients have one process that is the ancestor of all sessions. A server
    that ends with another client must be named.

    `servers` are the running ones. `has_pane` says whether a server has a running pane of the name
    in the caller's words; None if they contain no name.

    Raises:
        WhichServerError, NoServerError: As for `choose`.
    """
    if caller.wanted:
        for one in servers:
            if caller.wanted in (str(one.pid), one.directory):
                return one, "--server or TMUX_DEBUG_SERVER names it"
        raise WhichServerError(f"There is no server '{caller.wanted}'. {_listed(servers)}")
    found, reason = _of_ancestor(servers, caller), "it or its client started this shell"
    detached = [one for one in servers if one.keep_s is not None]
    if not found:
        found = [one for one in detached if one.cwd == caller.cwd]
        reason = "it serves this directory"
    is_elsewhere = not found
    if is_elsewhere:
        base = os.path.realpath(bases(caller.runtime)[0])
        near = [one for one in detached if os.path.realpath(os.path.dirname(one.directory)) == base]
        started = _started_by_ancestor(near, caller)
        if len(started) == 1:
            return started[0], "this shell started it"
        found = [one for one in near if not one.clients]
        reason = ONLY_ONE
    if len(found) > 1 and has_pane:
        with_pane = [one for one in found if has_pane(one)]
        if len(with_pane) == 1:
            return with_pane[0], HAS_PANE
    here = [one for one in found if one.cwd == caller.cwd]
    if len(here) == 1:
        found = here
    if len(found) == 1:
        return found[0], reason
    if found and not is_elsewhere:
        raise WhichServerError(f"Several servers match. Choose one. {_listed(found)}")
    raise NoServerError(_others(servers))


def _of_ancestor(servers: list[Server], caller: Surroundings) -> list[Server]:
    """Return the servers that are the nearest ancestor of a caller, or whose client is."""
    for ancestor in ancestors(caller.pid):
        found = [one for one in servers if ancestor == one.pid or ancestor in one.clients]
        if found:
            return found
    return []


def _started_by_ancestor(servers: list[Server], caller: Surroundings) -> list[Server]:
    """Return the servers that an ancestor of a caller has started."""
    started = [one for one in servers if one.starter]
    if not started:
        return []
    shells = {identity(ancestor) for ancestor in ancestors(caller.pid)}
    return [one for one in started if one.starter in shells]


def _listed(servers: list[Server]) -> str:
    if not servers:
        return "None is running."
    return "\n".join(["Running:", *(f"  --server {server}" for server in servers)])


def _others(servers: list[Server]) -> str:
    """Return a line, for the end of an error, that names servers the caller has not meant."""
    if not servers:
        return ""
    shown = ", ".join(f"{server.pid} ({server.cwd})" for server in servers[:_MAX_OTHERS])
    more = len(servers) - _MAX_OTHERS
    rest = f", and {more} more" if more > 0 else ""
    return f"\nOr choose another server with --server: {shown}{rest}"


def ancestors(pid: int) -> list[int]:
    """Return a process and its ancestors, the nearest first. Source: proc(5)."""
    found: list[int] = []
    while pid > 0 and len(found) < _MAX_ANCESTORS:
        found.append(pid)
        pid = parent(pid)
    return found


def may_descend(pid: int, ancestor: int) -> bool:
    """Return whether a process may descend from another: it does, or one in between is not known.

    That is so if it has ended, or has too many ancestors.
    """
    found = ancestors(pid)
    top = _status(found[-1])
    is_whole = bool(top) and int(top[1]) == 0
    return ancestor in found or not is_whole


def parent(pid: int) -> int:
    """Return the parent of a process, 0 if there is none."""
    fields = _status(pid)
    return int(fields[1]) if fields else 0


def identity(pid: int) -> str:
    """Return what identifies a process until the next boot, "" if it is gone."""
    fields = _status(pid)
    # With its start time, since pids are reused.
    return f"{pid} {fields[19].decode()}" if fields else ""


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
