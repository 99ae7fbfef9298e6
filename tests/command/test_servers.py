"""Which server a caller reaches, and who can't reach it."""

import contextlib
import json
import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from support import PATIENCE_S, ask_until, eventually
from wire import SERVER, Server

from tmux_debug_mcp.command.starting import directory_for
from tmux_debug_mcp.lease import Lease
from tmux_debug_mcp.options import parse_all
from tmux_debug_mcp.sockets import listener, servers
from tmux_debug_mcp.sockets.connection import Connection, ServerGoneError

from .conftest import PROGRAM, Shell

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


def socket_of(shell: Shell) -> str:
    [server] = shell.servers()
    return server.socket


@contextlib.contextmanager
def connected(shell: Shell) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(60)
        peer.connect(socket_of(shell))
        yield peer


def test_only_server_is_found(shell: Shell, server: Server) -> None:
    assert [one.pid for one in shell.servers()] == [server.pid]
    assert shell.out("run", "echo found") == "found\n"


def test_without_a_server_the_error_says_how_to_start_one(shell: Shell) -> None:
    done = shell.run("list")

    assert (done.returncode, done.stdout) == (125, "")
    # Servers of others on this machine may be there, too.
    assert done.stderr.splitlines()[0] == (
        "tmux-debug: You have no server here. Start one: tmux-debug start"
    )


def test_several_servers_are_listed(shell: Shell, launch: Callable[..., Server]) -> None:
    one, other = launch(), launch("--toolsets", "tabs")

    done = shell.run("list")

    assert done.returncode == 125
    assert done.stderr.startswith("tmux-debug: Several servers match. Choose one. Running:\n")
    lines = done.stderr.splitlines()
    assert f"  --server {one.pid}  {Path.cwd()}  (of an MCP client, toolsets debug)" in lines
    assert f"  --server {other.pid}  {Path.cwd()}  (of an MCP client, toolsets tabs)" in lines
    assert shell.out("--server", str(one.pid), "run", "echo 1") == "1\n"
    assert shell.run("run", "echo 2", TMUX_DEBUG_SERVER=str(other.pid)).stdout == "2\n"
    assert shell.run("--server", "1", "list").stderr.startswith(
        "tmux-debug: There is no server '1'. Running:\n"
    )


def test_server_of_another_directory_is_not_reached_unless_it_is_named(
    shell: Shell, tmp_path: Path
) -> None:
    """Also where it is the only one, and has the pane that is named."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / ".git").mkdir(parents=True)
    shell.by_person("create", "--name", "web", "stty -echo; read -r line; echo got $line; cat")
    [server] = shell.servers()
    before = shell.by_person("list").stdout

    for words in (
        *(["send", "web", "x", "Enter"], ["kill", "web"], ["stop"], ["restart", "web"], ["secret"]),
        *(["capture", "web"], ["wait", "web"], ["list"], ["attach", "web"], ["replay", "web"]),
        *(["run", "--pane", "web", "true"], ["call", "tmux_list_panes"], ["ps", "--names"]),
        ["dev"],
    ):
        done = shell.by_person(*words, cwd=elsewhere)

        assert (done.returncode, done.stdout) == (125, ""), words
        refusal = "'dev' is not running" if words == ["dev"] else "You have no server here"
        assert done.stderr.startswith(f"tmux-debug: {refusal}")
    assert [row["cursor"] for row in json.loads(shell.by_person("list").stdout)] == [
        row["cursor"] for row in json.loads(before)
    ]
    named = ["--server", str(server.pid), "capture", "web"]
    assert shell.by_person(*named, cwd=elsewhere).returncode == 0


@pytest.fixture
def agent(launch: Callable[..., Server], shell: Shell) -> Server:
    """Return the server of an agent that works in the shell's directory, with a pane."""
    server = launch(cwd=shell.cwd)
    server.call("create_pane", command="echo up; exec cat", name="web", wait_for="up")
    return server


def test_who_only_looks_reaches_the_server_of_an_agent_that_works_here(
    shell: Shell, agent: Server
) -> None:
    for words in (
        *(
            ["capture", "web"],
            ["wait", "web", "--idle", "0.1"],
            ["list"],
            ["ps"],
            ["ps", "--names"],
        ),
        *(["replay", "web", "--at", "0"], ["capture", "web", "--at", "0"]),
    ):
        done = shell.by_person(*words)

        assert agent.pid
        assert done.returncode == 0, done
        assert "up" in done.stdout or "web" in done.stdout or "--at" in words


def test_who_changes_something_has_to_name_the_server_of_an_agent_that_works_here(
    shell: Shell, agent: Server
) -> None:
    changes = (
        *(["send", "web", "x", "Enter"], ["resize", "web", "80x24"], ["restart", "web"]),
        *(["run", "--pane", "web", "true"], ["call", "tmux_kill_pane", "pane_id=web"]),
        *(["kill", "web"], ["stop"]),
    )
    for words in changes:
        done = shell.by_person(*words)

        here = f"\nOr choose another server with --server: {agent.pid} (of an MCP client here)"
        assert (done.returncode, done.stdout) == (125, ""), words
        assert done.stderr.startswith("tmux-debug: You have no server here")
        assert here in done.stderr
        assert done.stderr.count("\n") == 2
    assert len(shell.servers()) == 1
    assert agent.text("capture_pane", pane_id="web") == "up"
    for words in changes:
        named = shell.by_person("--server", str(agent.pid), *words)
        assert "You have no server here" not in named.stderr


@pytest.mark.parametrize("words", [["run", "echo mine"], ["create", "cat"], ["dev", "--", "cat"]])
def test_who_makes_a_pane_gets_a_server_of_their_own_beside_that_of_an_agent(
    shell: Shell, agent: Server, words: list[str]
) -> None:
    assert shell.by_person(*words).returncode == 0

    [own] = [one for one in shell.servers() if one.keep_s is not None]
    assert own.cwd == str(shell.cwd)
    assert f"{own}  used here: it serves this directory\n" in shell.by_person("ps").stdout
    assert '"web"' not in shell.by_person("list").stdout
    # By its name, the agent's pane can still be looked at.
    assert shell.by_person("capture", "web").stdout == "up\n"
    assert shell.by_person("kill", "web").stderr.startswith("tmux-debug: Pane 'web' not found.")
    assert agent.text("list_panes").count('"id"') == 1


ASKS = "stty -echo; read -r line; echo got ${#line}; exec cat"


@pytest.mark.parametrize("words", [["secret"], ["secret", "login"]], ids=" ".join)
def test_secret_is_typed_where_it_is_asked_for(
    shell: Shell, agent: Server, words: list[str]
) -> None:
    """A directory's servers are looked at alike: none goes first if several ask."""
    shell.by_person("create", "--name", "login", "exec cat")

    def types(secret: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*PROGRAM, *words],
            env=shell.env,
            cwd=shell.cwd,
            input=f"{secret}\n",
            capture_output=True,
            text=True,
            check=False,
        )

    nothing = types("nowhere")
    agent.call("create_pane", command=ASKS, name="login", timeout_s=30)
    agent.call("wait", pane_id="login")
    typed = types("there")
    agent.shows("login", "got 5")
    agent.call("kill_pane", pane_id="login")
    agent.call("create_pane", command=ASKS, name="login", timeout_s=30)
    agent.call("wait", pane_id="login")
    shell.by_person("kill", "login")
    shell.by_person("create", "--name", "login", ASKS)
    shell.by_person("wait", "login")
    several = types("nowhere")

    assert nothing.returncode == 125
    assert "hidden input" in nothing.stderr
    assert (typed.returncode, typed.stderr) == (0, ""), typed
    assert several.stderr.startswith("tmux-debug: Several servers match. Choose one. Running:\n")
    assert "got" not in agent.text("capture_pane", pane_id="login")
    assert "got" not in shell.by_person("capture", "login").stdout


def test_panes_of_worktrees_are_apart(
    shell: Shell, launch: Callable[..., Server], tmp_path: Path
) -> None:
    git = ["git", "-c", "user.name=me", "-c", "user.email=me@localhost", "-C"]
    main, other = tmp_path / "main", tmp_path / "main" / "other"
    subprocess.run(["git", "init", "-q", str(main)], check=True)
    subprocess.run([*git, str(main), "commit", "-qm", "-", "--allow-empty"], check=True)
    subprocess.run([*git, str(main), "worktree", "add", "-q", str(other)], check=True)
    (other / "below").mkdir()
    agents = {where: launch(cwd=where) for where in (main, other)}
    for where, agent in agents.items():
        agent.call("create_pane", command=f"echo {where.name}; exec cat", name="dev", wait_for=".")

    seen = [shell.by_person("capture", "dev", cwd=cwd).stdout for cwd in (main, other / "below")]
    killed = [shell.by_person("kill", "dev", cwd=cwd) for cwd in (main, other / "below", tmp_path)]

    assert seen == ["main\n", "other\n"]
    assert [done.returncode for done in killed] == [125] * 3
    for cwd in (main, other):
        shell.by_person("create", "--name", f"of-{cwd.name}", "cat", cwd=cwd)
    for cwd in (main, other / "below"):
        names = [pane["name"] for pane in json.loads(shell.by_person("list", cwd=cwd).stdout)]
        assert names == [f"of-{'main' if cwd == main else 'other'}"]
    assert shell.by_person("list", cwd=tmp_path).returncode == 125
    assert all('"running"' in agent.text("list_panes") for agent in agents.values())


CLIENT = """
import subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print("started", flush=True)
for line in sys.stdin:
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True)
    print((done.stdout + done.stderr).splitlines()[-1], flush=True)
"""


class Client:
    """An MCP client whose shell calls `tmux-debug`."""

    def __init__(self, shell: Shell, *command: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", CLIENT, *command],
            env=shell.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._line() == "started"

    def _line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def call(self, words: str) -> str:
        """Run a line in the client's shell, and return the last line that it prints."""
        program = shlex.join(PROGRAM)
        assert self.process.stdin
        self.process.stdin.write(f"{program} {words}\n")
        self.process.stdin.flush()
        return self._line()

    def end(self) -> None:
        self.process.communicate(timeout=60)


def test_shell_of_a_client_finds_the_clients_own_server(shell: Shell) -> None:
    """Also where a launcher, such as `uvx`, stays as the server's parent."""
    commands = {
        "none": SERVER,
        "shell": ["/bin/sh", "-c", f"{shlex.join(SERVER)}; true"],
        "timeout": ["timeout", "100", *SERVER],
    }
    clients: dict[str, Client] = {}
    for launcher, command in commands.items():
        clients[launcher] = Client(shell, *command)
        ask_until(shell.servers, lambda found: len(found) == len(clients))

    for launcher, client in clients.items():
        client.call(f"create --name {launcher} cat")
    listed = {launcher: json.loads(client.call("list")) for launcher, client in clients.items()}

    assert {launcher: [pane["name"] for pane in panes] for launcher, panes in listed.items()} == {
        launcher: [launcher] for launcher in clients
    }
    for client in clients.values():
        client.end()


def test_process_1_is_nobodys_client(shell: Shell, tmp_path: Path) -> None:
    """It adopts a server whose client has ended, and is the ancestor of every caller."""
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        replace(shell, cwd=tmp_path / name).out("start")
    facts = Path(shell.servers()[0].directory, "server.json")
    facts.write_text(json.dumps(json.loads(facts.read_text()) | {"clients": [1]}))

    assert shell.run("list").stderr.startswith("tmux-debug: You have no server here.")


def test_socket_is_for_its_user_alone(shell: Shell, server: Server) -> None:
    path = Path(socket_of(shell))

    assert server.pid
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@only_root
def test_another_user_is_sent_away_even_where_the_modes_let_it_in(
    shell: Shell, server: Server
) -> None:
    path = Path(socket_of(shell))
    for opened in (path.parent.parent, path.parent, path):
        opened.chmod(0o777)
    program = (
        "import os, socket; os.setuid(65534); peer = socket.socket(socket.AF_UNIX);"
        f"peer.connect({str(path)!r});"
        """peer.sendall(b'{"want": "stop"}\\n'); print(peer.recv(100))"""
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert (
        done.stdout == "b''\n"
        or "ConnectionResetError" in done.stderr
        or ("BrokenPipeError" in done.stderr)
    )
    path.parent.parent.chmod(0o700)
    path.parent.chmod(0o700)
    assert server.text("list_panes")


# Listens as another user, and prints what callers say to it.
IMPOSTOR = """
import fcntl, json, os, socket, sys
directory, cwd = sys.argv[1:]
status = os.stat(cwd)
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
os.makedirs(directory, exist_ok=True)
os.umask(0)
listener = socket.socket(socket.AF_UNIX)
listener.bind(f"{directory}/socket")
listener.listen(100)
inode = f"{status.st_dev}:{status.st_ino}"
facts = {"pid": os.getpid(), "clients": [], "cwd": cwd, "inode": inode, "toolsets": ""}
facts |= {"version": "", "keep_s": 9}
with open(f"{directory}/server.json", "w") as file:
    json.dump(facts, file)
fcntl.flock(os.open(directory, os.O_RDONLY), fcntl.LOCK_EX)
print("listens", flush=True)
while True:
    peer, _ = listener.accept()
    heard = peer.recv(1000)
    print(heard, flush=True)
    if heard:
        peer.sendall(b'{"out": "forged", "log": {}, "ask": "password: ", "exit": 0}\\n')
    peer.close()
"""


@contextlib.contextmanager
def impostor(directory: str, cwd: Path) -> Iterator[tuple[int, Callable[[], list[str]]]]:
    """Have another user serve a directory; yield their pid, and what ends it and has heard."""
    process = subprocess.Popen(
        [sys.executable, "-c", IMPOSTOR, directory, str(cwd)],
        stdout=subprocess.PIPE,
        text=True,
    )

    def heard() -> list[str]:
        with socket.socket(socket.AF_UNIX) as last:  # it has heard all others before this
            last.connect(f"{directory}/{servers.SOCKET}")
            last.sendall(b"last")
            last.recv(100)
        process.kill()
        return process.communicate()[0].splitlines()[:-1]

    assert process.stdout
    assert process.stdout.readline() == "listens\n"
    try:
        yield process.pid, heard
    finally:
        if process.poll() is None:
            heard()


@only_root
@pytest.mark.parametrize(
    "words",
    [
        *(["run", "mysql -psecret"], ["create", "cat"], ["start"], ["list"], ["ps"], ["stop"]),
        *(["attach", "x"], ["secret", "x"], ["replay", "x"], ["capture", "x", "--at", "1"]),
    ],
    ids=lambda words: words[0],
)
def test_socket_that_another_user_listens_on_is_told_nothing(
    shell: Shell, words: list[str]
) -> None:
    shell.out("start")
    [server] = shell.servers()
    shell.out("stop")
    ask_until(shell.left, lambda left: left == [])
    shell.runtime.chmod(0o711)
    directory = Path(server.directory)
    directory.mkdir()
    directory.chmod(0o777)
    with impostor(server.directory, shell.cwd) as (pid, heard):
        directory.chmod(0o700)
        shell.runtime.chmod(0o700)

        # At once, since `start` tries for ten seconds.
        callers = [shell.start("--server", str(pid), *words), shell.start(*words)]
        answers = [caller.communicate(timeout=60) for caller in callers]

        assert set(heard()) == {"b''"}
    assert not any("forged" in out + err for out, err in answers)


@only_root
@pytest.mark.skipif(
    servers.bases("")[0] != "/tmp",  # noqa: S108
    reason="this user has a private directory for sockets",
)
@pytest.mark.parametrize(
    ("program", "words"),
    [
        # It would reach another test's only server in /tmp.
        pytest.param("tmux-debug", ["run", "mysql -psecret"], marks=pytest.mark.alone),
        ("tmux-debug", ["start"]),
        ("tmux-debug-mcp", ["--keep", "60m"]),
    ],
)
def test_another_user_can_not_take_the_inode_of_a_detached_server(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, program: str, words: list[str]
) -> None:
    """In /tmp the name of a directory can be guessed, and anybody can make it first."""
    env = {name: value for name, value in shell.env.items() if name != "XDG_RUNTIME_DIR"}
    monkeypatch.chdir(shell.cwd)
    directory = directory_for(parse_all([], env), "")
    with impostor(directory, shell.cwd) as (_, heard):
        caller = shell.nursery.start(program, words, env=env, cwd=shell.cwd, encoding="utf-8")
        out, err = caller.communicate(timeout=60)

        assert heard() == []
    shutil.rmtree(directory)
    assert (caller.returncode, out) == (125 if program == "tmux-debug" else 1, "")
    assert err == (
        f"{program}: The socket's directory '{directory}' belongs to another user. Set "
        "XDG_RUNTIME_DIR to a directory of your own, with mode 0700.\n"
    )


def test_directory_that_others_can_enter_is_no_server(shell: Shell) -> None:
    fake = shell.runtime / "tmux-debug-1-0"
    fake.mkdir(mode=0o755)
    fake.chmod(0o755)
    facts = {
        "pid": os.getpid(),
        "clients": [os.getpid()],
        "cwd": "/",
        "inode": servers.inode_of("/"),
        "toolsets": "",
        "version": "",
    }
    (fake / "server.json").write_text(json.dumps(facts | {"keep_s": None}))

    assert shell.run("list").stderr.startswith("tmux-debug: You have no server here.")
    shutil.rmtree(fake)


@pytest.fixture
def listening(short_path: Path) -> Iterator[listener.Listener]:
    listening = listener.Listener(str(short_path / "server"))
    yield listening
    listening.close()
    assert not (short_path / "server").exists()


def path_of(listening: listener.Listener) -> str:
    return f"{listening.directory}/{servers.SOCKET}"


GARBAGE = [
    b"\n",
    b"garbage\n",
    b"[]\n",
    b"{}\n",
    b'{"want": "nothing"}\n',
    b'{"want": "verb"}\n',
    b'{"want": "verb", "words": "list", "cwd": "/"}\n',
    b'{"want": "verb", "words": [1], "cwd": "/"}\n',
    b'{"want": "mcp"}\n',
    b'{"want": "verb", "words": [' + b"[" * 100_000 + b"\n",
    b"\xff\xfe\n",
    b"x" * (9 << 20),
]


def test_garbage_is_sent_away_and_harms_nobody(shell: Shell, server: Server) -> None:
    for line in GARBAGE:
        with connected(shell) as peer, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            peer.sendall(line)
            assert peer.recv(100) == b"", line[:50]

        assert shell.out("run", "echo on") == "on\n", line[:50]
    server.finish()


async def test_caller_that_says_nothing_is_sent_away(listening: listener.Listener) -> None:
    listening.greeting_s = 0.05

    async def answer(_caller: listener.Caller, _greeting: listener.Greeting) -> None:
        pytest.fail("It has said nothing.")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listening.serve, answer)
        with socket.socket(socket.AF_UNIX) as caller:
            caller.connect(path_of(listening))
            with anyio.fail_after(PATIENCE_S):
                await anyio.wait_readable(caller)
            assert caller.recv(100) == b""
        tasks.cancel_scope.cancel()


def test_caller_that_reads_nothing_holds_up_nobody(shell: Shell, server: Server) -> None:
    server.call("create_pane", command="seq 200000; exec cat", name="much", timeout_s=3)
    wish = {"want": "verb", "words": ["capture", "much", "--since", "0"], "cwd": "/"}
    with contextlib.ExitStack() as stack:
        for _ in range(listener.MAX_CONNECTIONS // 2):
            stack.enter_context(connected(shell)).sendall(json.dumps(wish).encode() + b"\n")
        assert shell.out("run", "echo on") == "on\n"
    assert server.text("list_panes")


def test_ten_thousand_connections_harm_nobody(shell: Shell, server: Server) -> None:
    path = socket_of(shell)
    held = []
    for number in range(10_000):
        peer = socket.socket(socket.AF_UNIX)
        peer.connect(path)
        if number < 100:
            held.append(peer)
        else:
            peer.close()
    for peer in held:
        peer.close()

    assert shell.out("run", "echo on") == "on\n"
    assert server.text("list_panes")


def test_callers_that_say_nothing_keep_nobody_out(shell: Shell, server: Server) -> None:
    with contextlib.ExitStack() as stack:
        silent = [
            stack.enter_context(connected(shell)) for _ in range(2 * listener.MAX_CONNECTIONS)
        ]
        assert shell.out("list") == "[]\n"
        assert silent[0].recv(100) == b""  # the oldest has given way
    assert server.text("list_panes")


def waits(stack: contextlib.ExitStack, shell: Shell) -> socket.socket:
    """Return a connection to a server, in which a call waits for what never comes."""
    peer = stack.enter_context(connected(shell))
    words = ["wait", "web", "--pattern", "never", "--timeout", "600"]
    peer.sendall(json.dumps({"want": "verb", "words": words, "cwd": "/"}).encode() + b"\n")
    return peer


def test_callers_that_wait_keep_nobody_out(shell: Shell, server: Server) -> None:
    server.call("create_pane", command="cat", name="web", timeout_s=0)
    with contextlib.ExitStack() as stack:
        waiting = [waits(stack, shell) for _ in range(listener.MAX_CONNECTIONS)]
        refused = shell.run("list").stderr
        ask_until(lambda: shell.run("list").returncode, lambda status: status == 0)
        other = shell.start("wait", "web", "--pattern", "never", "--timeout", "600")
        newest = waiting[-1]

        # Whoever comes now is served, and those of whom there are most have one less.
        while not select.select([newest], [], [], 0.1)[0]:
            shell.out("list")

        assert "More than 64 callers wait for this server" in json.loads(newest.recv(1000))["err"]
        assert select.select(waiting[:-1], [], [], 0)[0] == []
        assert other.poll() is None
        other.terminate()
        other.communicate()
    assert refused in (
        "",
        "tmux-debug: The server already has 64 callers. Try again in a moment.\n",
    )
    assert server.text("list_panes")


def test_client_is_known_by_the_kernel_and_not_by_its_word(shell: Shell, server: Server) -> None:
    with connected(shell) as peer, subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            wish = {"want": "mcp", "client": other.pid, "environment": {}}
            fds = [theirs.fileno(), theirs.fileno()]
            before = shell.servers()[0].clients
            socket.send_fds(peer, [json.dumps(wish).encode() + b"\n"], fds)

            after = ask_until(lambda: shell.servers()[0].clients, lambda now: now != before)

        assert after - before == {servers.client_of(os.getpid())}
    assert server.text("list_panes")


def test_signal_removes_the_socket(shell: Shell, launch: Callable[..., Server]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        server = launch()
        os.kill(server.pid, number)
        server.process.wait(60)

        assert shell.left() == []


def test_directory_is_removed_while_somebody_looks_at_open_files(short_path: Path) -> None:
    path = short_path / "server"
    listening = listener.Listener(str(path))
    # As long as somebody reads /proc/PID/fd, closing a descriptor does not unlock.
    looked_at = os.dup(listening._lock)

    listening.close()

    assert not path.exists()
    os.close(looked_at)


def test_socket_of_a_killed_server_is_passed_over_and_removed_by_the_next(
    shell: Shell, launch: Callable[..., Server]
) -> None:
    killed = launch()
    killed.process.kill()
    killed.process.wait()
    assert len(shell.left()) == 1
    assert shell.run("list").returncode == 125
    next_one = launch()
    assert shell.out("run", "echo on") == "on\n"
    old = shell.runtime / next(name for name in shell.left() if str(killed.pid) in name)
    os.utime(old, (0, 0))

    launch()

    assert not old.exists()
    assert next_one.finish()


def test_server_of_a_client_is_only_stopped_by_its_pid(shell: Shell, server: Server) -> None:
    done = shell.run("stop")

    assert done.returncode == 125
    assert done.stderr == (
        f"tmux-debug: Server {server.pid} ends when its MCP client does. To end it now: tmux-debug "
        f"--server {server.pid} stop\n"
    )
    assert shell.out("--server", str(server.pid), "stop").startswith("Stopped server ")
    assert server.process.wait(60) == 0


def test_stopped_server_is_told_of_and_does_nothing_later(shell: Shell) -> None:
    shell.out("create", "--name", "web", "cat")
    [server] = shell.servers()
    before = json.loads(shell.out("list"))[0]
    verbs = [
        *(["list"], ["capture", "web"], ["wait", "web"], ["send", "web", "x", "Enter"]),
        *(["kill", "web"], ["create", "true"], ["run", "true"], ["restart", "web"], ["secret"]),
        *(["start", "--keep", "1s"], ["dev", "--", "cat"], ["ps", "--names"], ["replay", "web"]),
        ["call", "tmux_kill_pane", "pane_id=web"],
    ]

    os.kill(server.pid, signal.SIGSTOP)
    try:
        callers = [shell.start(*words) for words in verbs]
        answers = [caller.communicate(timeout=60) for caller in callers]
    finally:
        os.kill(server.pid, signal.SIGCONT)

    said = (
        f"tmux-debug: Server {server.pid} does not answer. If it was stopped (SIGSTOP), let it go "
        f"on: kill -CONT {server.pid}. Then, tmux-debug --server {server.pid} stop can end it.\n"
    )
    assert answers == [("", said)] * len(verbs)
    assert {caller.wait() for caller in callers} == {125}
    [after] = json.loads(shell.out("list"))
    assert [after[key] for key in ("id", "cursor")] == [before[key] for key in ("id", "cursor")]
    assert shell.servers()[0].keep_s == server.keep_s


def test_paths_of_one_runtime_directory_are_one(shell: Shell) -> None:
    name = f"only-in-{os.getpid()}"  # `ps` also lists what other tests run
    shell.out("create", "--name", name, "cat")
    link = shell.cwd / "link"
    link.symlink_to(shell.runtime)

    for path in (f"{shell.runtime}/", str(link)):
        other = replace(shell, env=shell.env | {"XDG_RUNTIME_DIR": path})
        assert other.out("ps").count(f"{name} running") == 1
        assert other.out("ps", "--names") == f"{name}\n"


def test_server_of_another_runtime_directory_is_listed_and_stopped(
    shell: Shell, short_path: Path, tmp_path: Path
) -> None:
    others = short_path / "others"
    others.mkdir(mode=0o700)
    other = replace(shell, env=shell.env | {"XDG_RUNTIME_DIR": str(others)})
    other.out("create", "--name", "web", "cat")
    [server] = other.servers()
    (tmp_path / "elsewhere" / ".git").mkdir(parents=True)
    elsewhere = replace(shell, cwd=tmp_path / "elsewhere")

    assert f"{server}  used here: it serves this directory\n  ? cat  debug-1 web" in shell.out("ps")
    assert f"{server}\n  ? cat  debug-1 web" in elsewhere.out("ps", "--all")
    refused = elsewhere.run("stop").stderr
    nothing = "tmux-debug: You have no server here, so there is nothing to stop.\n"
    assert refused.startswith(f"{nothing}Or choose another server with --server: ")
    assert elsewhere.out("--server", str(server.pid), "stop").startswith("Stopped server")
    assert other.servers() == []
    others.rmdir()


def test_long_runtime_directory_is_passed_over(shell: Shell, tmp_path: Path) -> None:
    """The path of a socket has at most 107 bytes."""
    long = tmp_path / ("x" * 100)
    long.mkdir(mode=0o700)
    server = replace(shell, env=shell.env | {"XDG_RUNTIME_DIR": str(long)}).launch()

    assert list(long.iterdir()) == []
    assert shell.out("--server", str(server.pid), "run", "echo on") == "on\n"
    assert server.finish() == (b"", b"")


def test_caller_that_sends_more_descriptors_than_it_may_is_sent_away(
    shell: Shell, server: Server
) -> None:
    before = len(os.listdir(f"/proc/{server.pid}/fd"))
    with connected(shell) as peer, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        for _ in range(600):
            socket.send_fds(peer, [b" "], [0, 1])
            assert len(os.listdir(f"/proc/{server.pid}/fd")) < before + 20
        assert peer.recv(100) == b""

    assert shell.out("run", "echo on") == "on\n"


def test_caller_that_sends_its_own_connection_is_sent_away(shell: Shell, server: Server) -> None:
    before = len(os.listdir(f"/proc/{server.pid}/fd"))
    for end in ("{", '{"want": "mcp"}\n', '{"want": "nothing"}\n'):
        with connected(shell) as peer:
            socket.send_fds(peer, [end.encode()], [peer.fileno(), peer.fileno()])
            with contextlib.suppress(ConnectionResetError):
                assert peer.recv(100) == b""

        ask_until(
            lambda: len(os.listdir(f"/proc/{server.pid}/fd")), lambda number: number <= before
        )


class TestEndOfALease:
    async def test_time_that_a_caller_has_changed_at_the_end_holds(self) -> None:
        lease = Lease(0.0)
        await lease.wait_until_over()

        lease.change(3600.0)

        with anyio.move_on_after(0.0) as scope:
            await lease.wait_until_over()
        assert scope.cancelled_caught

    def test_server_that_nobody_waits_for_is_reached_no_more(
        self, listening: listener.Listener
    ) -> None:
        assert listening.withdraw()

        with pytest.raises(ServerGoneError):
            Connection(path_of(listening))

    def test_caller_who_waits_is_served_first(self, listening: listener.Listener) -> None:
        waiting = Connection(path_of(listening))

        assert not listening.withdraw()

        another = Connection(path_of(listening))
        waiting.close()
        another.close()

    async def test_caller_who_has_said_nothing_yet_is_served_first(
        self, listening: listener.Listener
    ) -> None:
        served: list[object] = []

        async def answer(_caller: listener.Caller, greeting: listener.Greeting) -> None:
            await anyio.lowlevel.checkpoint()
            served.append(greeting.wish)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listening.serve, answer)
            caller = Connection(path_of(listening))
            await eventually(lambda: len(listening._visits) == 1)
            assert not listening.withdraw()
            caller.send({"want": "nothing"})
            await eventually(listening.withdraw)
            tasks.cancel_scope.cancel()
        caller.close()

        assert served == [{"want": "nothing"}]


def test_file_descriptors_that_nobody_wants_are_closed(shell: Shell, server: Server) -> None:
    before = len(os.listdir(f"/proc/{server.pid}/fd"))
    for _ in range(20):
        with connected(shell) as peer:
            socket.send_fds(peer, [b'{"want": "nothing"}\n'], [0, 1])
            assert peer.recv(100) == b""

    ask_until(lambda: len(os.listdir(f"/proc/{server.pid}/fd")), lambda number: number <= before)
