"""Which server a caller reaches: a table of situations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tmux_debug_mcp.sockets.choosing import (
    ASKS,
    CHANGES,
    LOOKS,
    MAKES,
    SHARES,
    STARTS,
    NoServerError,
    Surroundings,
    WhichServerError,
    directories_of,
    meant,
)
from tmux_debug_mcp.sockets.servers import Server, VerbError, inode_of

# The caller: a shell, below an agent, below a terminal.
CALLER, AGENT, TERMINAL = 30, 20, 10
STRANGER, OTHER = 77, 78

DIRECTORIES = [
    "home/repo/.git",
    "home/repo/sub/deep",
    "home/repo/module/sub",
    "home/worktree/sub",
    "home/plain/a/b",
    "home/other",
    "elsewhere/repo/.git",
    "elsewhere/repo/sub",
    "elsewhere/plain/a",
    "shared/.git",
    "shared/mine/below",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for directory in DIRECTORIES:
        (tmp_path / directory).mkdir(parents=True)
    for own in ("home/repo/module", "home/worktree"):
        (tmp_path / own / ".git").write_text("gitdir: there\n")
    (tmp_path / "shared").chmod(0o1777)
    (tmp_path / "link").symlink_to("home/repo")
    (tmp_path / "home-link").symlink_to("home")
    return tmp_path


# For each directory, those whose servers serve it.
SERVED_BY = {
    "home/repo": ["home/repo"],
    "home/repo/sub/deep": ["home/repo/sub/deep", "home/repo/sub", "home/repo"],
    "home/repo/module/sub": ["home/repo/module/sub", "home/repo/module"],  # a submodule
    "home/worktree/sub": ["home/worktree/sub", "home/worktree"],
    "home/plain/a/b": ["home/plain/a/b", "home/plain/a", "home/plain"],
    "home": ["home"],
    "elsewhere/repo/sub": ["elsewhere/repo/sub", "elsewhere/repo"],
    "shared": ["shared"],
    "shared/mine/below": ["shared/mine/below", "shared/mine"],
}


@pytest.mark.parametrize("home", ["home", "home-link", "home/"])
@pytest.mark.parametrize("cwd", SERVED_BY)
def test_servers_of_these_directories_serve(root: Path, cwd: str, home: str) -> None:
    found = directories_of(f"{root}/{cwd}", f"{root}/{home}")

    assert found == [f"{root}/{one}" for one in SERVED_BY[cwd]]


def test_home_that_is_a_repository_serves_no_directory_below(root: Path) -> None:
    (root / "home" / ".git").mkdir()

    assert directories_of(f"{root}/home/other", f"{root}/home") == [f"{root}/home/other"]


@pytest.mark.parametrize(
    ("cwd", "home", "served_by"),
    [
        ("/", "/root", ["/"]),
        ("/", "/", ["/"]),
        ("/tmp", "/root", ["/tmp"]),  # noqa: S108
        ("/usr/bin", "/root", ["/usr/bin", "/usr"]),
        ("/usr/bin", "/usr", ["/usr/bin"]),
        ("/usr/bin", "/usr/bin", ["/usr/bin"]),
        ("/usr", "/usr/bin", ["/usr"]),
    ],
)
def test_what_is_at_or_above_the_home_serves_itself(
    cwd: str, home: str, served_by: list[str]
) -> None:
    assert directories_of(cwd, home) == served_by


@dataclass(frozen=True)
class Runs:
    """A server that runs in a directory: a detached one, or one that ends with its client."""

    cwd: str
    client: int | None = None
    is_detached: bool = False


def of_client(client: int, cwd: str = "home/other") -> Runs:
    return Runs(cwd, client)


def detached(cwd: str, client: int | None = None) -> Runs:
    return Runs(cwd, client, is_detached=True)


LOOKING = (LOOKS, ASKS)
ALL = (*LOOKING, CHANGES, MAKES, SHARES)
NOT_LOOKING = (CHANGES, MAKES, SHARES)
NONE, WHICH = NoServerError, WhichServerError


@dataclass
class Case:
    """A situation: the servers that run, and what the caller gets.

    Attributes:
        servers: Their pids are 1001 and so on.
        gets: The pid of the server that is meant, or the error.
        why: What the reason or the error has in it.
        needs: What the caller's verb needs it for.
        wanted: What `--server` names.
        cwd: The caller's directory.
        parents: The ancestors of the caller, the nearest first.
        has: How well servers fit the panes that the caller names: 3 with one that asks for a
            secret, 2 with a running one, 1 with one that has ended.
    """

    servers: Sequence[Runs]
    gets: int | type[VerbError]
    why: str = ""
    needs: Sequence[str] = ALL
    wanted: str = ""
    cwd: str = "home/repo"
    parents: Sequence[int] = (AGENT, TERMINAL)
    has: Mapping[int, int] = field(default_factory=dict)


SEVERAL = "Several servers match. Choose one. Running:\n  --server 1001"
CASES = {
    # Named.
    "by its pid": Case([of_client(STRANGER)], 1001, "names it", wanted="1001"),
    "by its directory": Case([of_client(STRANGER)], 1001, "names it", wanted="/run/1001"),
    "a stranger's, beside the agent's own": Case(
        [of_client(STRANGER), of_client(AGENT)], 1001, "names it", wanted="1001"
    ),
    "one that does not run": Case(
        [detached("home/repo")], WHICH, "no server '9'. Running:\n  --server 1001", wanted="9"
    ),
    "one that does not run, where none does": Case(
        [], WHICH, "no server '9'. None is running.", wanted="9"
    ),
    "only whole pids are names": Case([detached("home/repo")], WHICH, wanted="100"),
    # An ancestor's.
    "shell of an agent": Case([of_client(AGENT)], 1001, "started this", (*LOOKING, CHANGES, MAKES)),
    "shell of an agent: others come to `dev`": Case([of_client(AGENT)], NONE, needs=[SHARES]),
    "shell of an agent, beside strangers'": Case(
        [of_client(STRANGER, "home/repo"), of_client(AGENT), of_client(OTHER)],
        1002,
        "started this",
        (*LOOKING, CHANGES, MAKES),
    ),
    "shell of an agent, beside the directory's": Case(
        [detached("home/repo"), of_client(AGENT)], 1002, "started this", (*LOOKING, CHANGES, MAKES)
    ),
    "shell of an agent, beside the directory's, to which others come": Case(
        [detached("home/repo"), of_client(AGENT)], 1001, "serves this", [SHARES]
    ),
    "pane": Case([of_client(STRANGER)], 1001, "started this", parents=[500, 1001]),
    "pane of a detached server": Case(
        [detached("home/other"), detached("home/repo")], 1001, parents=[500, 1001]
    ),
    "pane that an agent in another pane looks at": Case(
        [of_client(TERMINAL), of_client(AGENT)], 1001, parents=[500, 1001, AGENT]
    ),
    "agent in a pane: others come to the pane's server": Case(
        [detached("home/other"), of_client(AGENT)], 1001, needs=[SHARES], parents=[AGENT, 1001]
    ),
    "nearest of two agents": Case(
        [of_client(TERMINAL), of_client(AGENT)], 1002, "started this", (*LOOKING, CHANGES, MAKES)
    ),
    "agent that is connected to a detached server": Case(
        [detached("home/other", AGENT), detached("home/repo")], 1001, "started this"
    ),
    "agent with two servers of one directory": Case(
        [of_client(AGENT), of_client(AGENT)], WHICH, SEVERAL, (*LOOKING, CHANGES, MAKES)
    ),
    "agent with two servers of one directory, one with that pane": Case(
        [of_client(AGENT), of_client(AGENT)], 1002, needs=(*LOOKING, CHANGES, MAKES), has={1002: 2}
    ),
    "agent with two servers of one directory, both with that pane": Case(
        [of_client(AGENT), of_client(AGENT)],
        WHICH,
        SEVERAL,
        (*LOOKING, CHANGES, MAKES),
        has={1001: 2, 1002: 2},
    ),
    "client of all sessions: the directory's": Case(
        [of_client(AGENT), of_client(AGENT, "home/repo")],
        1002,
        "started this",
        (*LOOKING, CHANGES, MAKES),
        has={1001: 2},
    ),
    "client of all sessions: none of this directory": Case(
        [of_client(AGENT), of_client(AGENT, "home/worktree")],
        WHICH,
        SEVERAL,
        (*LOOKING, CHANGES, MAKES),
        has={1001: 2},
    ),
    "process 1 is nobody's client": Case([of_client(1)], NONE, parents=[AGENT, TERMINAL, 1]),
    # Another one is started, with options of its own.
    "another beside the directory's": Case([detached("home/repo")], NONE, needs=[STARTS]),
    "another than that of the shell's agent": Case([of_client(AGENT)], NONE, needs=[STARTS]),
    "another than the detached one of the shell's agent": Case(
        [detached("home/repo", AGENT)], NONE, needs=[STARTS]
    ),
    "another in a pane": Case(
        [detached("home/other")], 1001, needs=[STARTS], parents=[AGENT, 1001]
    ),
    "another than the named one": Case(
        [detached("home/other")], 1001, "names it", [STARTS], wanted="1001"
    ),
    # The directory's.
    "directory's": Case([detached("home/repo")], 1001, "serves this directory"),
    "directory's, by a link": Case([detached("link")], 1001, "serves this directory"),
    "directory above": Case([detached("home/repo")], 1001, cwd="home/repo/sub/deep"),
    "nearer of two above": Case(
        [detached("home/repo"), detached("home/repo/sub")], 1002, cwd="home/repo/sub/deep"
    ),
    "nearer of two above, though the other has that pane": Case(
        [detached("home/repo"), detached("home/repo/sub")],
        1002,
        cwd="home/repo/sub/deep",
        has={1001: 2},
    ),
    "directory below": Case([detached("home/repo/sub")], NONE, "1001 ("),
    "directory beside": Case([detached("home/other")], NONE, "1001 (", has={1001: 2}),
    "worktree, beside another's": Case(
        [detached("home/repo"), detached("home/worktree")], 1002, cwd="home/worktree/sub"
    ),
    "worktree, though the repository has one": Case(
        [detached("home/repo")], NONE, cwd="home/worktree"
    ),
    "worktree in the repository": Case([detached("home/repo")], NONE, cwd="home/repo/module"),
    "no repository": Case([detached("home/plain")], 1001, cwd="home/plain/a/b"),
    "home's, from below": Case([detached("home")], NONE, cwd="home/other"),
    "home's, at home": Case([detached("home")], 1001, "serves this directory", cwd="home"),
    "outside the home": Case([detached("elsewhere/repo")], 1001, cwd="elsewhere/repo/sub"),
    "shared directory's, from below": Case([detached("shared")], NONE, cwd="shared/mine"),
    "shared directory's, in it": Case([detached("shared")], 1001, cwd="shared"),
    "directory's, to which a client is connected": Case(
        [detached("home/repo", STRANGER)], 1001, "serves this directory"
    ),
    "two of a directory": Case([detached("home/repo")] * 2, WHICH, SEVERAL),
    "two of a directory, one with that pane": Case(
        [detached("home/repo")] * 2, 1002, "serves this", has={1002: 2}
    ),
    "two of a directory, one with that pane running": Case(
        [detached("home/repo")] * 2, 1002, "serves this", has={1001: 1, 1002: 2}
    ),
    # Of an agent's client that runs in the directory.
    "agent's": Case([of_client(STRANGER, "home/repo")], 1001, "its client runs here", LOOKING),
    "agent's, which others don't change": Case(
        [of_client(STRANGER, "home/repo"), detached("home/other")],
        NONE,
        "server: 1001 (of an MCP client here), 1002 (",
        NOT_LOOKING,
        has={1001: 2},
    ),
    "agent's, which is not the caller's own": Case(
        [of_client(STRANGER, "home/repo")],
        NONE,
        "You have no server here that this verb may use: only agents' servers. Start one: ",
        NOT_LOOKING,
    ),
    "agent's, above": Case(
        [of_client(STRANGER, "home/repo")], 1001, needs=LOOKING, cwd="home/repo/sub"
    ),
    "agent's, beside the directory's": Case(
        [of_client(STRANGER, "home/repo"), detached("home/repo")], 1002, "serves this directory"
    ),
    "agent's with that pane, beside the directory's": Case(
        [of_client(STRANGER, "home/repo"), detached("home/repo")],
        1001,
        needs=LOOKING,
        has={1001: 1},
    ),
    "agent's with that pane, beside the directory's, which is changed": Case(
        [of_client(STRANGER, "home/repo"), detached("home/repo")],
        1002,
        needs=NOT_LOOKING,
        has={1001: 2},
    ),
    "agent's and the directory's with that pane": Case(
        [of_client(STRANGER, "home/repo"), detached("home/repo")], 1002, has={1001: 2, 1002: 2}
    ),
    "agent's, nearer than a detached one": Case(
        [detached("home/repo"), of_client(STRANGER, "home/repo/sub")],
        1002,
        needs=LOOKING,
        cwd="home/repo/sub",
    ),
    "agent's, nearer than a detached one, which is not changed": Case(
        [detached("home/repo"), of_client(STRANGER, "home/repo/sub")],
        NONE,
        "server: 1002 (of an MCP client here), 1001 (",
        NOT_LOOKING,
        cwd="home/repo/sub",
    ),
    "two agents'": Case(
        [of_client(STRANGER, "home/repo"), of_client(OTHER, "home/repo")], WHICH, SEVERAL, LOOKING
    ),
    "two agents', one with that pane": Case(
        [of_client(STRANGER, "home/repo"), of_client(OTHER, "home/repo")],
        1002,
        needs=LOOKING,
        has={1002: 1},
    ),
    "agent's of another worktree, with that pane": Case(
        [of_client(STRANGER, "home/repo")], NONE, cwd="home/worktree", has={1001: 2}
    ),
    # A secret is typed where it is asked for.
    "agent's that asks, beside the directory's": Case(
        [of_client(STRANGER, "home/repo"), detached("home/repo")],
        1001,
        "its client runs here",
        [ASKS],
        has={1001: 3, 1002: 2},
    ),
    "agent's and the directory's that ask": Case(
        [of_client(STRANGER, "home/repo"), detached("home/repo")],
        WHICH,
        SEVERAL,
        [ASKS],
        has={1001: 3, 1002: 3},
    ),
    "two agents', one that asks": Case(
        [of_client(STRANGER, "home/repo"), of_client(OTHER, "home/repo")],
        1002,
        needs=[ASKS],
        has={1002: 3},
    ),
    "agent's of another worktree that asks": Case(
        [of_client(STRANGER, "home/repo")], NONE, needs=[ASKS], cwd="home/worktree", has={1001: 3}
    ),
    # None.
    "none": Case([], NONE, "You have no server here. Start one: "),
    "strangers' alone": Case(
        [of_client(STRANGER)] * 9, NONE, " start\nOr choose another server with --server: 1001 ("
    ),
    "nine strangers'": Case([of_client(STRANGER)] * 9, NONE, "and 5 more"),
    "nine strangers', and the directory's": Case(
        [*[of_client(STRANGER)] * 9, of_client(STRANGER, "home/repo")],
        NONE,
        "--server: 1010 (of an MCP client here), 1001 (",
        NOT_LOOKING,
    ),
}


def server(pid: int, runs: Runs, root: Path) -> Server:
    facts: dict[str, object] = {
        "pid": pid,
        "clients": [runs.client] if runs.client else [],
        "cwd": f"{root}/{runs.cwd}",
        "inode": inode_of(f"{root}/{runs.cwd}"),
        "toolsets": "debug",
        "version": "1",
        "keep_s": 3600.0 if runs.is_detached else None,
    }
    return Server(f"/run/{pid}", facts)


@pytest.mark.parametrize("name", CASES)
def test_caller_means(name: str, root: Path) -> None:
    case = CASES[name]
    directories = directories_of(f"{root}/{case.cwd}", f"{root}/home")
    inodes = [inode_of(directory) for directory in directories]
    here = Surroundings(case.wanted, [CALLER, *case.parents], inodes)
    listed = [server(1001 + number, runs, root) for number, runs in enumerate(case.servers)]

    def has(one: Server) -> int:
        assert len(listed) > 1, "asking takes longer than the rest"
        return case.has.get(one.pid, 0)

    for need in case.needs:
        for found in (listed, listed[::-1]):
            if isinstance(case.gets, int):
                taken, reason = meant(found, here, need, has)
                assert (taken.pid, case.why in reason) == (case.gets, True), (need, reason)
                continue
            with pytest.raises(case.gets) as raised:
                meant(found, here, need, has)
            if found is listed:
                assert case.why in str(raised.value), need
            assert str(raised.value).count("\n") <= max(1, len(found))


def test_directory_made_anew_at_the_same_path_is_another_one(tmp_path: Path) -> None:
    directory, moved = tmp_path / "worktree", tmp_path / "moved"
    directory.mkdir()
    inode = inode_of(str(directory))
    directory.rename(moved)
    assert inode_of(str(directory)) == ""
    directory.mkdir()

    assert inode_of(str(directory)) != inode == inode_of(str(moved))
