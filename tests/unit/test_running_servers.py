"""Where servers' sockets are looked for, and how long one that does not answer is waited for."""

import contextlib
import fcntl
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tmux_debug_mcp.command import listing, local
from tmux_debug_mcp.sockets import connection, servers
from tmux_debug_mcp.sockets.connection import Connection, ServerGoneError, panes_of
from tmux_debug_mcp.sockets.servers import VerbError
from tmux_debug_mcp.tmux import supervisor


@contextlib.contextmanager
def listens(directory: Path, *answers: bytes, backlog: int = 10) -> Iterator[socket.socket]:
    """Have a server listen in a directory; it gives these answers, and then no more."""
    directory.mkdir(mode=0o700)
    facts = {
        "pid": os.getpid(),
        "clients": [],
        "cwd": os.getcwd(),
        "inode": servers.inode_of("."),
        "toolsets": "debug",
        "version": "1",
        "keep_s": 60.0,
    }
    (directory / servers.FACTS).write_text(json.dumps(facts))
    lock = servers.hold(str(directory))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{directory}/{servers.SOCKET}")
        listener.listen(backlog)

        def answer() -> None:
            for line in answers:
                peer, _ = listener.accept()
                with peer:
                    peer.recv(1000)
                    peer.sendall(line)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield listener
        thread.join()
    os.close(lock)


@pytest.fixture
def runtime(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a runtime directory, from a directory where no other server is."""
    (short_path / "here").mkdir()
    (short_path / "runtime").mkdir(mode=0o700)
    monkeypatch.chdir(short_path / "here")
    return short_path / "runtime"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_ANSWER_S", 0.05)
    monkeypatch.setattr(local, "_STOP_S", 0.05)


class TestServerThatDoesNotAnswer:
    """Such as one that is stopped (SIGSTOP)."""

    @pytest.mark.usefixtures("impatient")
    def test_call_to_one_with_too_many_callers_ends(self, runtime: Path) -> None:
        with listens(runtime / "tmux-debug-1-a", backlog=0):
            path = f"{runtime}/tmux-debug-1-a/{servers.SOCKET}"
            first = Connection(path)  # the backlog has room for one more than it says
            with pytest.raises(ServerGoneError, match=rf"^Server {os.getpid()} does not"):
                Connection(path)
            first.close()

    def test_one_with_many_callers_is_waited_for(self, runtime: Path) -> None:
        with listens(runtime / "tmux-debug-1-a", backlog=0) as listener:
            path = f"{runtime}/tmux-debug-1-a/{servers.SOCKET}"
            first = Connection(path)
            connected = threading.Thread(target=lambda: Connection(path).close(), daemon=True)
            connected.start()
            peer, _ = listener.accept()
            connected.join()

            peer.close()
            first.close()

    @pytest.mark.usefixtures("impatient")
    @pytest.mark.parametrize("keys", [10, 1 << 20])
    def test_call_that_it_does_not_read_ends(self, runtime: Path, keys: int) -> None:
        with listens(runtime / "tmux-debug-1-a"):
            caller = Connection(f"{runtime}/tmux-debug-1-a/{servers.SOCKET}")

            def call() -> None:
                caller.send({"want": "verb", "words": ["send", "web", "x" * keys]})
                list(caller.messages())

            with pytest.raises(ServerGoneError, match=rf"let it go on: kill -CONT {os.getpid()}\."):
                call()
            caller.close()

    @pytest.mark.usefixtures("impatient")
    def test_call_that_it_has_read_takes_as_long_as_it_takes(
        self, runtime: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looked = threading.Event()
        has_unread = Connection._has_unread

        def look(caller: Connection) -> bool:
            looked.set()
            return has_unread(caller)

        monkeypatch.setattr(Connection, "_has_unread", look)
        with listens(runtime / "tmux-debug-1-a") as listener:
            caller = Connection(f"{runtime}/tmux-debug-1-a/{servers.SOCKET}")
            peer, _ = listener.accept()
            caller.send({"want": "verb", "words": ["wait", "web"]})
            peer.recv(1000)

            def answer() -> None:
                looked.wait()
                peer.sendall(b'{"exit": 0}\n')
                peer.close()

            late = threading.Thread(target=answer, daemon=True)
            late.start()
            assert list(caller.messages()) == [{"exit": 0}]
            late.join()
            caller.close()

    @pytest.mark.usefixtures("impatient")
    @pytest.mark.parametrize("callers", [0, 1])
    def test_list_goes_on(
        self, runtime: Path, callers: int, capfd: pytest.CaptureFixture[str]
    ) -> None:
        with listens(runtime / "tmux-debug-1-a", backlog=0), contextlib.ExitStack() as stack:
            path = f"{runtime}/tmux-debug-1-a/{servers.SOCKET}"
            for _ in range(callers):
                stack.callback(Connection(path).close)
            assert listing.ps([], {"XDG_RUNTIME_DIR": str(runtime)}) == 0
            with pytest.raises(ServerGoneError):
                panes_of(path)

        assert (
            "  used here: it or its client started this shell\n    does not answer\n"
            in capfd.readouterr().out
        )

    @pytest.mark.usefixtures("impatient")
    def test_stop_says_so(self, runtime: Path, capfd: pytest.CaptureFixture[str]) -> None:
        with (
            listens(runtime / "tmux-debug-1-a"),
            pytest.raises(VerbError, match=rf"does not answer.*kill -CONT {os.getpid()}"),
        ):
            local.stop([], {"XDG_RUNTIME_DIR": str(runtime)})
        assert capfd.readouterr().out == ""


def test_stop_says_why_the_server_refuses(runtime: Path, capfd: pytest.CaptureFixture[str]) -> None:
    refusal = b'{"err": "tmux-debug: The server already has 64 callers.\\n", "exit": 125}\n'
    with (
        listens(runtime / "tmux-debug-1-a", refusal),
        pytest.raises(VerbError, match=r"^The server already has 64 callers\.$"),
    ):
        local.stop([], {"XDG_RUNTIME_DIR": str(runtime)})
    assert capfd.readouterr().out == ""


def test_server_that_was_killed_does_not_run(runtime: Path) -> None:
    """Also where it is the only one."""
    with listens(runtime / "tmux-debug-1-a"):
        [found] = [one for one in servers.running(str(runtime)) if str(runtime) in one.directory]
        assert found.pid == os.getpid()
        with pytest.raises(BlockingIOError):
            fcntl.flock(
                os.open(runtime / "tmux-debug-1-a", os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB
            )

    assert [one for one in servers.running(str(runtime)) if str(runtime) in one.directory] == []


def test_server_that_is_about_to_end_does_not_run(runtime: Path) -> None:
    """At the end of its lease, it withdraws its socket. Who needs one starts the next."""
    directory = runtime / "tmux-debug-1-a"
    with listens(directory):
        (directory / servers.SOCKET).rename(directory / "withdrawn")

        assert str(directory) not in [one.directory for one in servers.running(str(runtime))]


class TestRuntimeDirectory:
    @pytest.fixture(params=["plain", "link", "slash", "open", "odd name", "long", "file", "none"])
    def path(self, request: pytest.FixtureRequest, short_path: Path) -> str:
        """Return what XDG_RUNTIME_DIR is."""
        plain = short_path / "plain"
        plain.mkdir(mode=0o700)
        (short_path / "link").symlink_to("plain")
        (short_path / "open").mkdir(mode=0o755)
        (short_path / "odd name").mkdir(mode=0o700)
        (short_path / ("long" * 20)).mkdir(mode=0o700)
        (short_path / "file").touch(0o700)
        names = {"slash": "plain/", "long": "long" * 20}
        return f"{short_path}/{names.get(request.param, request.param)}"

    def test_is_the_same_for_our_sockets_and_those_of_tmux(self, path: str) -> None:
        ours = servers.bases(path)[:-1]

        assert [Path(base) for base in ours] == supervisor.runtime_directories(path)[:-1]
        is_usable = path.endswith(("/plain", "/link", "/plain/"))
        assert (path.rstrip("/") in ours) == is_usable

    def test_servers_are_found_in_it_by_each_of_its_paths(self, runtime: Path) -> None:
        (runtime.parent / "link").symlink_to(runtime)
        with listens(runtime / "tmux-debug-1-a"):
            for path in (str(runtime), f"{runtime}/", f"{runtime.parent}/link"):
                found = servers.running(path)
                assert [one.pid for one in found].count(os.getpid()) == 1


class TestDirectoryThatOthersCanFill:
    """Such as /tmp, where other users may put any number of files with names like ours."""

    @pytest.fixture
    def shared(self, short_path: Path) -> Path:
        path = short_path / "shared"
        path.mkdir()
        path.chmod(0o1777)
        return path

    @pytest.mark.parametrize("moved", [False, True], ids=["of a client", "detached"])
    def test_is_not_listed_and_servers_in_it_are_found(
        self, runtime: Path, shared: Path, monkeypatch: pytest.MonkeyPatch, *, moved: bool
    ) -> None:
        listed: list[str] = []
        listdir = os.listdir

        def recorded(path: str) -> list[str]:
            listed.append(path)
            return listdir(path)

        monkeypatch.setattr(os, "listdir", recorded)
        with listens(shared / "tmux-debug-1a-b"), socket.socket(socket.AF_UNIX) as others:
            (shared / "tmux-debug-2-b").mkdir(mode=0o755)
            others.bind(f"{shared}/tmux-debug-2-b/{servers.SOCKET}")
            if moved:
                (shared / "tmux-debug-1a-b").rename(shared / "tmux-debug-1a")
            found = servers.running(str(runtime))

        assert [one.directory for one in found if str(shared) in one.directory] == [
            f"{shared}/tmux-debug-1a" if moved else f"{shared}/tmux-debug-1a-b"
        ]
        assert str(runtime) in listed
        assert str(shared) not in listed
        assert "/tmp" not in listed  # noqa: S108


def test_server_waits_for_those_who_look_whether_it_lives(tmp_path: Path) -> None:
    looking = servers.hold(str(tmp_path), is_shared=True)
    locked: list[int] = []
    starting = threading.Thread(target=lambda: locked.append(servers.hold(str(tmp_path))))
    starting.start()
    starting.join(0.1)
    assert starting.is_alive()

    os.close(looking)
    starting.join(60)

    assert servers.is_held(str(tmp_path))
    os.close(locked[0])
