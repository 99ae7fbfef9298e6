"""Which server a caller reaches. Nothing is guessed: it is the first of these that exists.

1. The server that `--server` or TMUX_DEBUG_SERVER names.
2. The server that is the nearest ancestor of the caller, or whose client is. So a pane finds its
   own server, and an agent's shell finds the agent's.
3. A server of the nearest directory that has any: the caller's own, or a directory above it in the
   same repository; see `directories_of`. Detached servers come first. A server that ends with its
   MCP client is only for verbs that look; see `LOOKS`.

Of several that fit, it is the server with the pane that the caller names. They must all be of the
same directory: another directory's server is reached only by rules 1 and 2.
"""

import os
import stat
from collections.abc import Callable, Collection, Mapping

from tmux_debug_mcp.own_command import own_command

from .connection import ServerGoneError, panes_of
from .servers import Server, VerbError, ancestors, current_directory, inode_of, running

# What a verb needs a server for. Only to look, or to bring a person:
LOOKS = "looks"
# To look where a program asks for a secret:
ASKS = "asks"
# To change its panes:
CHANGES = "changes"
# To make a pane: where there is no server, a detached one is started for the caller's directory:
MAKES = "makes"
# To make a pane for all who come to that directory. So a server that ends with a client does not
# do, except in its own panes:
SHARES = "shares"
# To start a server with options of its own, beside those of the directory:
STARTS = "starts"

# What a row of a pane says that such a program awaits.
HIDDEN_INPUT = "hidden input"
_IS_ASKED = 3

# How many other servers an error names, on one line.
_MAX_OTHERS = 4


class NoServerError(VerbError):
    """Raised when there is no server that the caller can mean.

    Attributes:
        sentence: The same without other servers.
        others: A line that names others, those of the caller's directory first; "" if there are
            none.
    """

    def __init__(self, others: str, *, has_agents: bool) -> None:
        start = f"{own_command(is_for_here=True)} start"
        none = "You have no server here"
        if has_agents:
            none += " that this verb may use: only agents' servers"
        self.sentence = f"{none}. Start one: {start}"
        self.others = others
        super().__init__(self.sentence + others)


class WhichServerError(VerbError):
    """Raised when the named server does not run, or when the caller can mean several.

    Attributes:
        sentence: The same without the servers to choose from.
    """

    def __init__(self, sentence: str, servers: list[Server]) -> None:
        self.sentence = sentence
        running = "\n".join(["Running:", *(f"  --server {server}" for server in servers)])
        super().__init__(f"{sentence} {running if servers else 'None is running.'}")


class Surroundings:
    """Where a caller is, which determines its server.

    Attributes:
        wanted: The named server: a pid or a directory, as for `--server`; "" for none.
        pids: The process that calls and its ancestors, the nearest first.
        inodes: Of the directories whose servers serve its own, the nearest first.
    """

    def __init__(self, wanted: str, pids: list[int], inodes: list[str]) -> None:
        self.wanted = wanted
        self.pids = pids
        self.inodes = inodes

    def distance(self, server: Server) -> int:
        """Return how many directories a server is above the caller's, many if it is elsewhere."""
        return self.inodes.index(server.inode) if self.has(server) else len(self.inodes)

    def has(self, server: Server) -> bool:
        """Return whether a server is one of the caller's directory, or of one above it."""
        return server.inode in self.inodes


def surroundings(environ: Mapping[str, str]) -> Surroundings:
    """Return where this process is.

    Raises:
        VerbError: Its directory is gone.
    """
    directories = directories_of(current_directory(), os.path.expanduser("~"))
    inodes = [inode_of(directory) for directory in directories]
    return Surroundings(environ.get("TMUX_DEBUG_SERVER", ""), ancestors(os.getpid()), inodes)


def directories_of(cwd: str, home: str) -> list[str]:
    """Return a directory and those above it whose servers serve it, too, the nearest first.

    They end at the root of the repository, where `.git` is: each worktree and each submodule is
    one of its own. They never contain the home or what is above it, nor a directory that users
    share, such as /tmp.
    """
    found = [cwd]
    below_home = os.path.realpath(home).rstrip("/") + "/"
    while not os.path.lexists(f"{found[-1]}/.git"):
        above = os.path.dirname(found[-1])
        if below_home.startswith(above.rstrip("/") + "/") or not _is_own(above):
            break
        found.append(above)
    return found


def _is_own(directory: str) -> bool:
    """Return whether a directory can be read and is not one that users share."""
    try:
        return not os.stat(directory).st_mode & stat.S_ISVTX
    except OSError:
        return False


def server_for(
    environ: Mapping[str, str], need: str, panes: Callable[[], Collection[str]] = tuple
) -> Server:
    """Return the server that this process reaches with a verb.

    `need` is what the verb needs it for, such as `LOOKS`. `panes` returns the panes that the verb
    names, by name or id; it is called only if there are several servers.

    Raises:
        WhichServerError: The named one does not run, or the caller can mean several.
        NoServerError: There is none that the caller can mean.
        VerbError: The current directory is gone.
    """
    servers = running(environ.get("XDG_RUNTIME_DIR", ""))
    found, _ = meant(
        servers, surroundings(environ), need, lambda server: _has(server, need, panes())
    )
    return found


def meant(
    servers: list[Server], here: Surroundings, need: str, has: Callable[[Server], int]
) -> tuple[Server, str]:
    """Return the server that a caller means, and why, in words that follow "because".

    `servers` are the running ones. `has` tells which of several to take, the one for which it is
    greatest: 3 if a secret is asked for there, 2 if a pane that the caller names runs there, 1 if
    it has ended, else 0.

    Raises:
        WhichServerError, NoServerError: As for `server_for`.
    """
    if here.wanted:
        for server in servers:
            if here.wanted in (str(server.pid), server.directory):
                return server, "--server or TMUX_DEBUG_SERVER names it"
        raise WhichServerError(f"There is no server '{here.wanted}'.", servers)
    found = _of_ancestor(servers, here, need)
    if found:
        # Some clients have one process that is the ancestor of all sessions.
        found = _with_pane(_nearest(found, here) or found, has)
        return _only(found), "it or its client started this shell"
    near = [] if need == STARTS else _nearest(servers, here)
    usable = _with_pane(near if need in (LOOKS, ASKS) else _detached(near), has)
    asked_of_several = need == ASKS and len(usable) > 1 and has(usable[0]) == _IS_ASKED
    if _detached(usable) and not asked_of_several:
        return _only(_detached(usable)), "it serves this directory"
    if usable:
        return _only(usable), "its client runs here; only attach, secret and verbs that read use it"
    raise NoServerError(_others(servers, here), has_agents=bool(near))


def _only(found: list[Server]) -> Server:
    if len(found) > 1:
        raise WhichServerError("Several servers match. Choose one.", found)
    return found[0]


def _with_pane(found: list[Server], has: Callable[[Server], int]) -> list[Server]:
    """Return those that have the pane which the caller names, if they are of one directory."""
    if len(found) <= 1 or len({server.inode for server in found}) > 1:
        return found
    ranks = {server.pid: has(server) for server in found}
    return [server for server in found if ranks[server.pid] == max(ranks.values())]


def _detached(servers: list[Server]) -> list[Server]:
    return [server for server in servers if server.keep_s is not None]


def _of_ancestor(servers: list[Server], here: Surroundings, need: str) -> list[Server]:
    """Return the servers that are the nearest ancestor of a caller, or whose client is."""
    usable = {SHARES: _detached(servers), STARTS: []}.get(need, servers)
    for pid in here.pids:
        found = [server for server in servers if server.pid == pid]
        found += [server for server in usable if pid in server.clients]
        if found:
            return found
    return []


def _nearest(servers: list[Server], here: Surroundings) -> list[Server]:
    """Return the servers of the nearest of the caller's directories that has one."""
    for inode in here.inodes:
        found = [server for server in servers if server.inode == inode]
        if found:
            return found
    return []


def _has(server: Server, need: str, panes: Collection[str]) -> int:
    """Return what a server has of the panes that the caller names, as for `meant`.

    If it names none, a secret is for any that asks for one.
    """
    try:
        rows = panes_of(server.socket) if panes or need == ASKS else []
    except ServerGoneError:
        return 0
    named = [row for row in rows if row["name"] in panes or row["id"] in panes]
    asked = named if panes else rows
    if need == ASKS and any(row.get("awaits") == HIDDEN_INPUT for row in asked):
        return _IS_ASKED
    return 2 if any(row["status"] == "running" for row in named) else int(bool(named))


def _others(servers: list[Server], here: Surroundings) -> str:
    """Return a line, for the end of an error, that names servers the caller has not meant.

    Those of its directory come first.
    """
    if not servers:
        return ""
    nearest_first = sorted(servers, key=here.distance)
    shown = ", ".join(
        f"{server.pid} ({_where(server, here)})" for server in nearest_first[:_MAX_OTHERS]
    )
    more = len(servers) - _MAX_OTHERS
    rest = f", and {more} more" if more > 0 else ""
    return f"\nOr choose another server with --server: {shown}{rest}"


def _where(server: Server, here: Surroundings) -> str:
    is_of_client_here = here.has(server) and server.keep_s is None
    return "of an MCP client here" if is_of_client_here else server.place
