"""Which server a caller means: a table of situations."""

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from tmux_debug_mcp.sockets import servers
from tmux_debug_mcp.sockets.servers import (
    CommandError,
    NoServerError,
    Server,
    Surroundings,
    WhichServerError,
    meant,
)

OURS, ELSEWHERE = "/run/user/1000", "/tmp"  # noqa: S108  where servers have their sockets
HERE, THERE, OTHER = "/home/me/here", "/home/me/there", "/home/me/other"
# The caller: a shell, below an agent, below a terminal.
CALLER, AGENT, TERMINAL = 30, 20, 10
STRANGER = 77


def of_client(pid: int, client: int, cwd: str = OTHER, base: str = OURS) -> Server:
    """Return a server that ends with its client."""
    return server(pid, [client], cwd, None, base)


def detached(pid: int, cwd: str, *clients: int, base: str = OURS, starter: int = 0) -> Server:
    return server(pid, list(clients), cwd, 3600.0, base, str(starter))


def server(
    pid: int, clients: list[int], cwd: str, keep_s: float | None, base: str, starter: str = ""
) -> Server:
    facts = {"pid": pid, "clients": clients, "cwd": cwd, "keep_s": keep_s, "starter": starter}
    return Server(f"{base}/tmux-debug-{pid}", facts | {"toolsets": "debug", "version": "1"})


@dataclass
class Case:
    """A situation: the servers that run, and what the caller gets.

    Attributes:
        gets: The pid of the server that is meant, or the error.
        why: What the reason or the error has in it.
        wanted: What `--server` names.
        cwd: The caller's directory.
        parents: The ancestors of the caller, the nearest first.
        with_pane: The servers with a running pane of the name that the caller gives; None if it
            gives none.
    """

    servers: Sequence[Server]
    gets: int | type[CommandError]
    why: str = ""
    wanted: str = ""
    cwd: str = HERE
    parents: Sequence[int] = (AGENT, TERMINAL)
    with_pane: Sequence[int] | None = field(default=None)


CASES = {
    # Named.
    "by its pid": Case([of_client(1001, STRANGER)], 1001, "names it", wanted="1001"),
    "by its directory": Case(
        [of_client(1001, STRANGER)], 1001, "names it", wanted=f"{OURS}/tmux-debug-1001"
    ),
    "a stranger's, beside the agent's own": Case(
        [of_client(1001, STRANGER), of_client(1002, AGENT)], 1001, "names it", wanted="1001"
    ),
    "where sockets of others are": Case(
        [of_client(1001, STRANGER, base=ELSEWHERE)], 1001, "names it", wanted="1001"
    ),
    "one that does not run": Case(
        [detached(1001, HERE)], WhichServerError, "no server '9'. Running:\n  --server 1001", "9"
    ),
    "one that does not run, where none does": Case(
        [], WhichServerError, "no server '9'. None is running.", wanted="9"
    ),
    "only whole pids are names": Case([detached(1001, HERE)], WhichServerError, wanted="100"),
    # An ancestor's.
    "shell of an agent": Case([of_client(1001, AGENT)], 1001, "started this"),
    "shell of an agent, in another directory": Case(
        [of_client(1001, AGENT, cwd=THERE)], 1001, "started this"
    ),
    "shell of an agent, beside strangers'": Case(
        [of_client(1001, STRANGER, cwd=HERE), of_client(1002, AGENT), of_client(1003, 78)],
        1002,
        "started this",
    ),
    "shell of an agent, beside the directory's": Case(
        [detached(1001, HERE), of_client(1002, AGENT)], 1002, "started this"
    ),
    "client without $XDG_RUNTIME_DIR": Case(
        [of_client(1001, AGENT, base=ELSEWHERE)], 1001, "started this"
    ),
    "pane": Case([of_client(1001, STRANGER)], 1001, "started this", parents=[500, 1001]),
    "pane of a detached server": Case(
        [detached(1001, THERE), detached(1002, HERE)], 1001, parents=[500, 1001]
    ),
    "nearest of two agents": Case(
        [of_client(1001, TERMINAL), of_client(1002, AGENT)], 1002, "started this"
    ),
    "pane that an agent in another pane looks at": Case(
        [of_client(1001, TERMINAL), of_client(1002, AGENT)], 1001, parents=[500, 1001, AGENT]
    ),
    "agent that is connected to a detached server": Case(
        [detached(1001, THERE, AGENT), detached(1002, HERE)], 1001, "started this"
    ),
    "agent with two servers": Case(
        [of_client(1001, AGENT), of_client(1002, AGENT)], WhichServerError, "Choose one. Running:"
    ),
    "agent with two servers, one with that pane": Case(
        [of_client(1001, AGENT), of_client(1002, AGENT)],
        1002,
        "pane with that name",
        with_pane=[1002],
    ),
    "agent with two servers, both with that pane": Case(
        [of_client(1001, AGENT), of_client(1002, AGENT)],
        WhichServerError,
        with_pane=[1001, 1002],
    ),
    "agent with two servers, none with that pane": Case(
        [of_client(1001, AGENT), of_client(1002, AGENT)], WhichServerError, with_pane=[]
    ),
    "agent with two servers, one for this directory": Case(
        [of_client(1001, AGENT, cwd=THERE), of_client(1002, AGENT, cwd=HERE)], 1002, "started this"
    ),
    "agent with two servers, one for this directory, the other with that pane": Case(
        [of_client(1001, AGENT, cwd=THERE), of_client(1002, AGENT, cwd=HERE)],
        1001,
        "pane with that name",
        with_pane=[1001],
    ),
    "agent with two servers for this directory": Case(
        [of_client(1001, AGENT, cwd=HERE), of_client(1002, AGENT, cwd=HERE)], WhichServerError
    ),
    "process 1 is nobody's client": Case(
        [of_client(1001, 1)], NoServerError, parents=[AGENT, TERMINAL, 1]
    ),
    # The directory's.
    "directory's": Case([detached(1001, HERE)], 1001, "serves this directory"),
    "directory's, beside another directory's": Case(
        [detached(1001, THERE), detached(1002, HERE)], 1002, "serves this directory"
    ),
    "directory's, beside a stranger's in it": Case(
        [of_client(1001, STRANGER, cwd=HERE), detached(1002, HERE)], 1002, "serves this directory"
    ),
    "directory's, to which a client is connected": Case(
        [detached(1001, HERE, STRANGER)], 1001, "serves this directory"
    ),
    "directory's, whose socket is elsewhere": Case(
        [detached(1001, HERE, base=ELSEWHERE)], 1001, "serves this directory"
    ),
    "directory's, though another one has that pane": Case(
        [detached(1001, HERE), detached(1002, THERE)], 1001, with_pane=[1002]
    ),
    "directory above has its own": Case(
        [detached(1001, HERE), detached(1002, THERE)], NoServerError, cwd=f"{HERE}/below"
    ),
    "two of a directory": Case(
        [detached(1001, HERE), detached(1002, HERE)], WhichServerError, "Several servers"
    ),
    "two of a directory, one with that pane": Case(
        [detached(1001, HERE), detached(1002, HERE)], 1002, "with that name", with_pane=[1002]
    ),
    # That of a script, which is elsewhere now.
    "this shell's": Case([detached(1001, THERE, starter=AGENT)], 1001, "this shell"),
    "this shell's, beside others'": Case(
        [detached(1001, THERE, starter=AGENT), detached(1002, OTHER), of_client(1003, STRANGER)],
        1001,
        "this shell",
    ),
    "this shell's, beside the directory's": Case(
        [detached(1001, THERE, starter=AGENT), detached(1002, HERE)], 1002, "this directory"
    ),
    "this shell's, beside the agent's": Case(
        [detached(1001, THERE, starter=CALLER), of_client(1002, AGENT)], 1002, "started this"
    ),
    "two of this shell's": Case(
        [detached(1001, THERE, starter=AGENT), detached(1002, OTHER, starter=AGENT)], NoServerError
    ),
    "another shell's": Case([detached(1001, THERE, starter=STRANGER)], 1001, "only detached one"),
    # Another detached one.
    "only detached one": Case([detached(1001, THERE)], 1001, "only detached one"),
    "only detached one, beside strangers'": Case(
        [of_client(1001, STRANGER), detached(1002, THERE), of_client(1003, 78)],
        1002,
        "only detached one",
    ),
    "only detached one, to which somebody else's client is connected": Case(
        [detached(1001, THERE, STRANGER)],
        NoServerError,
        "Or choose another server with --server: 1001",
    ),
    "only free one of two": Case(
        [detached(1001, THERE, STRANGER), detached(1002, OTHER)], 1002, "only detached one"
    ),
    "only detached one, whose socket is elsewhere": Case(
        [detached(1001, THERE, base=ELSEWHERE)], NoServerError
    ),
    "two detached ones": Case(
        [detached(1001, THERE), detached(1002, OTHER)], NoServerError, " start"
    ),
    "two detached ones, one with that pane": Case(
        [detached(1001, THERE), detached(1002, OTHER)], 1002, "with that name", with_pane=[1002]
    ),
    "two detached ones, both with that pane": Case(
        [detached(1001, THERE), detached(1002, OTHER)], NoServerError, with_pane=[1001, 1002]
    ),
    # None.
    "none": Case([], NoServerError, "You have no server here. Start one: "),
    "a stranger's alone": Case(
        [of_client(1001, STRANGER)],
        NoServerError,
        f" start\nOr choose another server with --server: 1001 ({OTHER})",
    ),
    "a stranger's alone, in this directory": Case(
        [of_client(1001, STRANGER, cwd=HERE)], NoServerError
    ),
    "a stranger's, with that pane": Case(
        [of_client(1001, STRANGER)], NoServerError, with_pane=[1001]
    ),
    "nine strangers'": Case(
        [of_client(1001 + number, STRANGER) for number in range(9)], NoServerError, "and 5 more"
    ),
    "directory that is gone": Case([of_client(1001, STRANGER)], NoServerError, cwd=""),
}


@pytest.mark.parametrize("name", CASES)
def test_caller_means(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    monkeypatch.setattr(servers, "ancestors", lambda pid: [pid, *case.parents])
    monkeypatch.setattr(servers, "identity", str)
    monkeypatch.setattr(servers, "bases", lambda _runtime: [OURS, ELSEWHERE])
    caller = Surroundings(case.wanted, CALLER, case.cwd, OURS)
    has_pane: Callable[[Server], bool] | None = None
    if case.with_pane is not None:
        has_pane = lambda one: one.pid in (case.with_pane or ())  # noqa: E731

    for found in (list(case.servers), list(reversed(case.servers))):
        if isinstance(case.gets, int):
            taken, reason = meant(found, caller, has_pane)
            assert (taken.pid, case.why in reason) == (case.gets, True), reason
        else:
            with pytest.raises(case.gets) as raised:
                meant(found, caller, has_pane)
            if found == case.servers:
                assert case.why in str(raised.value)
            assert str(raised.value).count("\n") <= max(1, len(found))


def test_process_may_descend_from_another_unless_all_its_ancestors_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        assert servers.may_descend(child.pid, os.getpid())
        assert not servers.may_descend(os.getpid(), child.pid)
        with monkeypatch.context() as patch:  # too many to follow
            patch.setattr(servers, "_MAX_ANCESTORS", 1)
            assert servers.may_descend(child.pid, child.pid + 1)
    # It has ended, and left a child that still has its connection.
    assert servers.may_descend(child.pid, os.getpid())
