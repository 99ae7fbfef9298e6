"""The toolset `tmux` over stdio: the user's own tmux server outlives ours, however that ends."""

import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import User, ask_until
from wire import Server


@pytest.fixture
def directory(short_path: Path) -> Iterator[Path]:
    yield short_path
    for socket in short_path.rglob("*"):
        if socket.is_socket():
            subprocess.run(["tmux", "-S", str(socket), "kill-server"], check=False)


def of_user(socket: Path, *words: str) -> str:
    return subprocess.run(
        ["tmux", "-S", str(socket), *words], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize(
    ("starts", "end"),
    [
        ("a tool", "end of input"),
        ("a tool", "SIGTERM"),
        ("a tool", "SIGKILL"),
        ("the user", "SIGINT"),
        ("the user", "SIGHUP"),
        ("the user", "SIGKILL"),
    ],
)
def test_users_server_outlives_ours(
    launch: Callable[..., Server], directory: Path, end: str, starts: str
) -> None:
    socket = directory / "user"
    if starts == "the user":
        of_user(socket, "-f", "/dev/null", "new-session", "-d", "-s", "mine", "exec cat")
    server = launch(
        "--toolsets",
        "tmux,terminal",
        "--socket",
        str(socket),
        XDG_STATE_HOME=str(directory / "state"),
    ).start()
    made = server.call("create_session", name="made", command="exec cat")
    assert not made.get("isError"), made
    server.call_tool("getContent")  # its session is on a server of ours and ends with us
    if end == "end of input":
        server.finish()
    else:
        server.process.send_signal(signal.Signals[end])
        server.finish()

    names = of_user(socket, "list-sessions", "-F", "#{session_name}").split()
    assert names == (["made", "mine"] if starts == "the user" else ["made"])
    assert of_user(socket, "list-panes", "-t", "=made:", "-F", "#{pane_current_command}") == "cat\n"
    assert of_user(socket, "list-clients") == ""


def test_programs_may_open_as_many_files_as_whoever_started_us(
    execute: Callable[..., Server], directory: Path
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (500, hard))
    try:
        server = execute("--toolsets", "tmux,terminal", "--socket", str(directory / "user")).start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    raised = f"\nMax open files            {min(hard, 65_536)} "
    assert raised in Path(f"/proc/{server.pid}/limits").read_text()

    def limit_of(path: Path) -> str:
        return ask_until(lambda: path.read_text() if path.exists() else "", bool)

    ours, users = directory / "limit-of-ours", directory / "limit-of-users"
    server.call_tool("createSession", name="made", command=f"ulimit -S -n >{ours}; exec cat")
    server.call("create_session", name="made", command=f"ulimit -S -n >{users}; exec cat")

    assert (limit_of(ours), limit_of(users)) == ("500\n", "500\n")


def test_users_server_is_left_alone_where_no_socket_is_given(
    launch: Callable[..., Server], user: User
) -> None:
    """Whoever starts our server may well do so in a pane of their own."""
    pid, pane = user.tmux("display-message", "-p", "-t", "=mine:", "#{pid} #{pane_id}").split()
    within = {"TMUX": f"{user.socket},{pid},0", "TMUX_PANE": pane}
    before = user.state()
    sessions = user.tmux("list-sessions", "-F", "#{session_name} #{session_activity}")

    server = launch("--toolsets", "debug,tabs,terminal", **within).start()
    server.text("create_pane", command="cat", name="mine")
    server.text("send_keys", pane_id="mine", keys="text Enter")
    server.call_tool("create_tab", name="mine")
    server.call_tool("type", text="echo text\n")
    server.text("kill_pane", pane_id="mine")
    server.finish()

    assert user.state() == before
    assert user.tmux("list-sessions", "-F", "#{session_name} #{session_activity}") == sessions
    assert user.tmux("list-clients") == ""


def test_default_is_the_server_that_tmux_itself_would_use(
    launch: Callable[..., Server], directory: Path
) -> None:
    server = launch("--toolsets", "tmux", "--socket", "default", TMUX_TMPDIR=str(directory)).start()
    made = server.call("create_session", name="made", command="exec cat")
    assert not made.get("isError"), made
    [place] = directory.iterdir()
    assert (place.name, place.stat().st_mode & 0o777) == (f"tmux-{os.getuid()}", 0o700)

    subprocess.run(
        ["tmux", "-f", "/dev/null", "new-session", "-d", "-s", "mine"],
        env={**os.environ, "TMUX_TMPDIR": str(directory)},
        check=True,
    )
    sessions = server.text("list_sessions").splitlines()
    assert [row.partition("\t")[0] for row in sessions] == ["made", "mine"]
    assert "was started without --allow-kill" in server.text("kill", target="mine", type="session")


def test_only_a_person_types_a_secret_on_their_own_server(
    launch: Callable[..., Server], directory: Path
) -> None:
    socket = directory / "user"
    asks = "stty -echo; echo asks; read x; stty echo; echo got ${#x}; exec cat"
    of_user(socket, "-f", "/dev/null", "new-session", "-d", "-s", "mine", asks)
    options = ("--toolsets", "tmux", "--socket", str(socket), "--secrets", "person")
    server = launch(*options).start()
    ask_until(lambda: server.text("read_pane", target="mine"), lambda text: "asks" in text)

    refused = server.call("send_keys", target="mine", keys="hunter2")

    assert refused["isError"]
    assert (
        "awaits hidden input, which only a person may type here. Nothing was typed."
        in (refused["content"][0]["text"])
    )
    of_user(socket, "send-keys", "-t", "mine", "by hand", "Enter")
    ask_until(lambda: server.text("read_pane", target="mine"), lambda text: "got 7" in text)


def test_killing_is_allowed_by_the_option(launch: Callable[..., Server], directory: Path) -> None:
    socket = directory / "user"
    of_user(socket, "-f", "/dev/null", "new-session", "-d", "-s", "mine", "exec cat")
    killing = launch("--toolsets", "tmux", "--socket", str(socket), TMUX_DEBUG_ALLOW_KILL="1")

    told = killing.start().text("kill", target="mine", type="session")
    assert told == "Killed session 'mine'."
