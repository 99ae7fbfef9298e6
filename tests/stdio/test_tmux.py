"""The toolset `tmux` over stdio: the user's own tmux server outlives ours, however that ends."""

import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import wait_until
from wire import SERVER, Server


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


@pytest.mark.parametrize("end", ["end of input", "SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"])
@pytest.mark.parametrize("starts", ["the user", "a tool"])
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
    launch: Callable[..., Server], directory: Path
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (500, hard))
    try:
        ours, users = (
            launch().start(),
            launch("--toolsets", "tmux", "--socket", str(directory / "user")).start(),
        )
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (
        f"\nMax open files            {min(hard, 65_536)} "
        in Path(f"/proc/{ours.pid}/limits").read_text()
    )
    assert ours.text("run", command="ulimit -S -n") == "500\n"
    users.call("create_session", name="made", command=f"ulimit -S -n >{directory}/limit; exec cat")
    limit = directory / "limit"
    wait_until(lambda: limit.exists() and limit.read_text() != "")

    assert limit.read_text() == "500\n"


def test_default_is_the_server_that_tmux_itself_would_use(
    launch: Callable[..., Server], directory: Path
) -> None:
    inherited = {**os.environ, "TMUX_TMPDIR": str(directory)}
    subprocess.run(
        ["tmux", "-f", "/dev/null", "new-session", "-d", "-s", "mine"], env=inherited, check=True
    )
    server = launch("--toolsets", "tmux", "--socket", "default", TMUX_TMPDIR=str(directory)).start()

    assert server.text("list_sessions").startswith("mine\t$0\t1 windows\t0 attached")


def test_killing_is_allowed_by_a_switch(launch: Callable[..., Server], directory: Path) -> None:
    socket = directory / "user"
    of_user(socket, "-f", "/dev/null", "new-session", "-d", "-s", "mine", "exec cat")
    arguments = ("--toolsets", "tmux", "--socket", str(socket))
    for variable in ("", "0", "no"):
        refusing = launch(*arguments, TMUX_DEBUG_ALLOW_KILL=variable).start()
        assert "was started without --allow-kill" in refusing.text(
            "kill", target="mine", type="session"
        )
    of_user(socket, "new-window", "-t", "mine:", "exec cat")
    assert (
        launch(*arguments, "--allow-kill").start().text("kill", target="mine:0")
        == "Killed pane 'mine:0'."
    )
    killing = launch(*arguments, TMUX_DEBUG_ALLOW_KILL="1").start()
    assert killing.text("kill", target="mine", type="session") == "Killed session 'mine'."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--socket", "default"],
            (
                "--socket is for the toolsets tmux and tabs. "
                "Choose one with --toolsets, or leave it out."
            ),
        ),
        (
            ["--toolsets", "debug,tmux"],
            (
                "Toolsets 'debug' and 'tmux' both have a tool 'tmux_list_panes'. "
                "Choose one of the two."
            ),
        ),
        (
            ["--toolsets", "tab"],
            "There is no toolset 'tab'. Choose of debug, tabs, terminal, tmux.",
        ),
    ],
)
def test_toolsets_that_clash_or_are_unknown_stop_the_start(
    environment: dict[str, str], arguments: list[str], message: str
) -> None:
    done = subprocess.run(
        [*SERVER, *arguments], env=environment, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"tmux-debug-mcp: {message}\n")


@pytest.mark.parametrize("word", ["n", "maybe", " "])
def test_word_that_may_mean_anything_allows_nothing(environment: dict[str, str], word: str) -> None:
    arguments = ["--toolsets", "tmux", "--socket", "default"]
    mine = environment | {"TMUX_DEBUG_ALLOW_KILL": word}
    done = subprocess.run(
        [*SERVER, *arguments], env=mine, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"tmux-debug-mcp: TMUX_DEBUG_ALLOW_KILL is '{word}'. Give 1 or 0.\n"


def test_directory_of_the_default_socket_is_made_as_tmux_does(
    launch: Callable[..., Server], directory: Path
) -> None:
    server = launch("--toolsets", "tmux", "--socket", "default", TMUX_TMPDIR=str(directory)).start()
    made = server.call("create_session", name="made", command="exec cat")
    assert not made.get("isError"), made

    [place] = directory.iterdir()
    assert (place.name, place.stat().st_mode & 0o777) == (f"tmux-{os.getuid()}", 0o700)


def test_toolset_is_chosen_by_a_variable_too(launch: Callable[..., Server]) -> None:
    server = launch(TMUX_DEBUG_TOOLSETS="terminal, tmux").start()
    names = {tool["name"] for tool in server.ask("tools/list")["tools"]}

    assert {"sendKey", "tmux_split_window"} <= names
    assert "tmux_create_pane" not in names
