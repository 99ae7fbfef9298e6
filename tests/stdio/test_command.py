"""The command: flags, variables, and what it says when it can't start."""

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest
from support import ask_until
from wire import SERVER, Server

import tmux_debug_mcp
from tmux_debug_mcp.command import serve
from tmux_debug_mcp.demo import debugging
from tmux_debug_mcp.option_checks import checked
from tmux_debug_mcp.options import OPTIONS, parse
from tmux_debug_mcp.own_command import own_command
from tmux_debug_mcp.settings import Settings, pane_environment
from tmux_debug_mcp.tmux.versions import is_new_enough

# What the demo shows, in this order.
DEMO_TELLS = (
    "with payee.lock:",
    "blocked: waits for locks in all 2 threads (futex)",
    "(<bob: locked>, <alice: locked>)",
    "awaits hidden input",
    "Typed into pane 'debug-3'",
    "deployed",
)


def command(
    environment: dict[str, str], *arguments: str, cwd: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*SERVER, *arguments],
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def by_shell(environment: dict[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    """Run the command with words and redirections."""
    return subprocess.run(
        ["sh", "-c", f"exec {shlex.join(SERVER)} {' '.join(words)}"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# Runs the command in this process, which must refuse to start; returns status and standard error.
Refused = Callable[..., tuple[int, str]]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Refused:
    def refused(*arguments: str, **variables: str) -> tuple[int, str]:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["tmux-debug-mcp", *arguments])
            for stream in ("stdout", "stderr"):
                patch.setattr(sys, stream, getattr(sys, stream))
            patch.setattr(os, "_exit", sys.exit)
            for name, value in variables.items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                serve.main()
        printed = capfd.readouterr()
        assert printed.out == ""
        return int(str(ended.value)), printed.err

    return refused


def test_server_that_is_started_in_a_terminal_says_what_it_is(environment: dict[str, str]) -> None:
    master, terminal = os.openpty()
    process = subprocess.Popen(
        SERVER, env=environment, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    os.close(terminal)
    os.write(master, b"\x04")  # C-d
    out, err = process.communicate(timeout=60)
    os.close(master)

    assert (process.returncode, out) == (0, b"")
    assert err.startswith(b"tmux-debug-mcp is an MCP server: ")
    for line in (
        "demo  ",
        "config CLIENT ",
        "--help ",
    ):
        assert f"\n  {own_command()} {line}" in err.decode()
    assert command(environment).stderr == ""


def test_server_collects_garbage_but_not_what_it_imported(environment: dict[str, str]) -> None:
    program = (
        "import anyio, gc, os, sys\n"
        "from tmux_debug_mcp import cli\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'tmux_debug_mcp.server':\n"
        "            print(gc.isenabled())\n"
        "sys.meta_path.insert(0, Finder())\n"
        "anyio.run = lambda *_: print(gc.isenabled(), gc.get_freeze_count() > 0)\n"
        "cli.run([], os.environ)\n"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert printed.stdout == "False\nTrue True\n"


def fake_tmux(tmp_path: Path, version: str) -> str:
    tmux = tmp_path / "tmux"
    tmux.write_text(f"#!/bin/sh\necho '{version}'\n")
    tmux.chmod(0o755)
    return str(tmux)


def test_help_names_every_option_with_its_variable(environment: dict[str, str]) -> None:
    done = command(environment, "--help")

    assert done.returncode == 0
    for option in OPTIONS:
        assert f"--{option.flag}" in done.stdout
        assert option.variable in done.stdout
    assert "demo" in done.stdout


@pytest.mark.parametrize("version", ["tmux 3.2a", "tmux 2.9", "tmux 1.8", "screen 4"])
def test_older_tmux_is_one_sentence_and_status_1(
    refused: Refused, tmp_path: Path, version: str
) -> None:
    tmux = fake_tmux(tmp_path, version)

    status, message = refused("--tmux", tmux)

    assert status == 1
    assert message == (
        f"tmux-debug-mcp: tmux 3.3 or newer is needed, but '{tmux}' is {version}. Install a newer "
        "one, or point --tmux to one.\n"
    )


@pytest.mark.parametrize(
    "version", ["tmux 3.3", "tmux 3.3a", "tmux 3.10", "tmux next-3.6", "tmux 4.0", "tmux master"]
)
def test_newer_tmux_is_new_enough(version: str) -> None:
    assert is_new_enough(version)


def test_tmux_without_a_locale_that_it_needs_is_told_as_such(
    refused: Refused, tmp_path: Path
) -> None:
    tmux = tmp_path / "tmux"
    tmux.write_text(
        "#!/bin/sh\necho 'tmux: need UTF-8 locale (LC_CTYPE) but have ANSI_X3.4-1968' >&2\nexit 1\n"
    )
    tmux.chmod(0o755)

    status, message = refused("--tmux", str(tmux))

    assert status == 1
    assert message == (
        f"tmux-debug-mcp: '{tmux} -V' says: tmux: need UTF-8 locale (LC_CTYPE) but have "
        "ANSI_X3.4-1968. tmux needs a UTF-8 locale. Install C.UTF-8 or en_US.UTF-8, or set "
        "LC_CTYPE to one that locale -a lists.\n"
    )


def test_start_that_fails_is_one_sentence_and_status_1(environment: dict[str, str]) -> None:
    done = command(environment, "--tmux", "/no/tmux")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("tmux-debug-mcp: tmux is needed, but '/no/tmux' can't be started")


@pytest.mark.parametrize("arguments", [[], ["demo"]])
def test_missing_tmux_is_one_sentence_and_status_1(refused: Refused, arguments: list[str]) -> None:
    status, message = refused(*arguments, TMUX_DEBUG_TMUX="/no/tmux")

    assert status == 1
    assert message == (
        "tmux-debug-mcp: tmux is needed, but '/no/tmux' can't be started (No such file or "
        "directory). Install tmux 3.3 or newer, or point --tmux to it.\n"
    )


def test_wrong_arguments_are_usage_and_status_2(environment: dict[str, str]) -> None:
    done = command(environment, "--no-such")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: tmux-debug-mcp [OPTION ...]\ntmux-debug-mcp: Option ")


@pytest.mark.parametrize("words", ["--aud x", "nothing", "demo nothing", "--audit"])
def test_arguments_of_any_kind_can_be_wrong(refused: Refused, words: str) -> None:
    status, message = refused(*words.split())

    assert status == 2
    assert message.startswith("usage: tmux-debug-mcp [OPTION ...]\ntmux-debug-mcp: Option ")


@pytest.mark.parametrize("options", [[], ["--keep", "60m"]])
@pytest.mark.parametrize("fd", [0, 1])
def test_closed_standard_stream_is_one_sentence_and_status_1(
    environment: dict[str, str], fd: int, options: list[str]
) -> None:
    done = by_shell(environment, *options, f"{fd}>&-")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("tmux-debug-mcp: Standard input or output is closed")


@pytest.mark.parametrize("word", ["--help", "--version", "demo"])
@pytest.mark.parametrize(
    ("stream", "reason"),
    [(">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")],
)
def test_output_that_can_not_be_written_is_one_sentence_and_status_1(
    environment: dict[str, str], word: str, stream: str, reason: str
) -> None:
    done = by_shell(environment, word, stream)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"tmux-debug-mcp: The output can't be written: {reason}.\n"


def test_what_needs_no_input_runs_without_it(environment: dict[str, str]) -> None:
    done = by_shell(environment, "--version", "<&-")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("tmux-debug-mcp ")


@pytest.mark.parametrize(
    ("words", "status"), [("--no-such", 2), ("--toolsets debug,tmux", 1), ("--tmux /no/such", 1)]
)
def test_complaint_never_goes_to_standard_output(
    environment: dict[str, str], words: str, status: int
) -> None:
    done = by_shell(environment, *words.split(), "2>&-")

    assert (done.returncode, done.stdout) == (status, "")


def test_relative_tmux_and_paths_from_home_are_found(
    launch: Callable[..., Server], tmp_path: Path
) -> None:
    (tmp_path / "my-tmux").symlink_to(shutil.which("tmux") or "")
    server = launch(
        "--tmux",
        os.path.relpath(tmp_path / "my-tmux"),
        "--audit",
        "~/audit.log",
        HOME=str(tmp_path),
    )
    server.start()

    assert server.text("create_pane", command="cat").startswith("Created pane")
    server.finish()
    assert '"tool":"create_pane"' in (tmp_path / "audit.log").read_text()


def test_audit_that_can_not_be_opened_stops_the_start(
    refused: Refused,
) -> None:
    status, message = refused(TMUX_DEBUG_AUDIT="/proc/no/audit.log")

    assert status == 1
    assert message.startswith("tmux-debug-mcp: The audit can't be opened: ")
    assert "/proc/no" in message


def test_log_directory_that_can_not_be_made_stops_the_start(
    refused: Refused,
) -> None:
    status, message = refused("--log-dir", "/proc/no")

    assert status == 1
    assert message.startswith("tmux-debug-mcp: The log directory can't be created: ")


def test_flag_wins_over_variable_and_an_empty_one_switches_it_off(
    launch: Callable[..., Server], tmp_path: Path
) -> None:
    flagged, ignored = tmp_path / "flagged", tmp_path / "ignored"
    server = launch(
        "--audit",
        str(flagged),
        "--log-dir",
        "",
        "--drop-env",
        "SECRET_*, KEY",
        TMUX_DEBUG_AUDIT=str(ignored),
        TMUX_DEBUG_AUDIT_FULL="",
        TMUX_DEBUG_LOG_DIR=str(ignored),
        SECRET_A="1",  # noqa: S106
        KEY="2",
        KEY2="kept",
    ).start()
    server.text("create_pane", command="env; exec cat")
    text = server.shows("debug-1", "KEY2=kept", lines=1000)
    server.finish()

    assert '"tool":"create_pane"' in flagged.read_text()
    assert not ignored.exists()
    assert "SECRET_A" not in text
    assert "KEY=2" not in text


def test_panes_do_not_inherit_what_is_dropped_and_get_a_locale_only_where_there_is_none() -> None:
    environ = {
        "CLAUDE_CODE_TOKEN": "1",
        "CLAUDECODE": "1",
        "TMUX": "x",
        "TMUX_DEBUG_AUDIT": "y",
        "PATH": "/bin",
    }
    dropped = next(option.default for option in OPTIONS if option.flag == "drop-env").split(",")

    assert pane_environment(environ, dropped) == {"PATH": "/bin", "LC_CTYPE": "C.UTF-8"}
    assert pane_environment({"LANG": "C"}, []) == {"LANG": "C"}
    assert pane_environment({"LANG": ""}, []) == {"LANG": "", "LC_CTYPE": "C.UTF-8"}
    assert pane_environment({}, ["A*"], {"A": "1", "LANG": "de_DE.UTF-8"}) == {
        "A": "1",
        "LANG": "de_DE.UTF-8",
    }
    assert pane_environment({"LANG": "C"}, [], {"LANG": ""}) == {"LANG": "", "LC_CTYPE": "C.UTF-8"}


def in_terminal(environment: dict[str, str], *arguments: str) -> tuple[int, str]:
    """Run the command with a terminal of 80 columns; return its status and what it printed."""
    master, terminal = os.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    process = subprocess.Popen([*SERVER, *arguments], env=environment, stdout=terminal)
    os.close(terminal)
    printed = bytearray()
    with contextlib.suppress(OSError):  # the end
        while True:
            printed += os.read(master, 4096)
    os.close(master)
    return process.wait(timeout=60), printed.decode().replace("\r\n", "\n")


def test_demo_names_the_lock_and_a_person_types_the_password(
    environment: dict[str, str], tmp_path: Path
) -> None:
    # With a tmux that is not on the PATH.
    (tmp_path / "my-tmux").symlink_to(shutil.which("tmux") or "")
    (tmp_path / "tmux").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "tmux").chmod(0o755)
    mine = {
        "TERM": "xterm",
        "TMUX_DEBUG_TMUX": str(tmp_path / "my-tmux"),
        "PATH": f"{tmp_path}:{environment['PATH']}",
    }
    status, printed = in_terminal(environment | mine, "demo")

    assert status == 0, printed
    shown = re.sub(r"\033\[[\d;]*m", "", printed)
    tools = re.findall(r"^> tmux_(\w+)\(", shown, re.MULTILINE)
    assert tools == ["run", "create_pane", "send_keys", "run", "wait"]
    words = " ".join(shown.split())
    places = [words.find(told) for told in DEMO_TELLS]
    assert -1 not in places, words
    assert places == sorted(places)
    assert debugging.SECRET not in words
    assert len(shown.splitlines()) <= 55
    assert max(map(len, shown.splitlines())) <= 80
    # The status lines stand out.
    assert printed.count(f"\033[{debugging.STATUS}m  [debug-") == len(tools)
    for pid in re.findall(r"\(pid (\d+)\)", words):
        assert not Path("/proc", pid).exists()


def test_demo_fails_where_nothing_hangs(environment: dict[str, str], tmp_path: Path) -> None:
    shutil.copytree(Path(tmux_debug_mcp.__file__).parent, tmp_path / "tmux_debug_mcp")
    test = tmp_path / "tmux_debug_mcp" / "demo" / "test_bank.py"
    test.write_text(test.read_text().replace("with payee.lock", "with threading.Lock()"))

    done = command(environment, "demo", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[-1].startswith("That didn't go as it should.")
    assert "\033" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ["--size", "80"],
            (
                "--size (TMUX_DEBUG_SIZE) is '80'. "
                "Give columns and rows, such as 120x40, of at most 500x200."
            ),
        ),
        (["--size", "501x40"], "--size (TMUX_DEBUG_SIZE) is '501x40'. Give columns"),
        (["--size", "80x24"], "--size (TMUX_DEBUG_SIZE) needs the toolset terminal."),
        (
            ["--cwd", "/no/such"],
            (
                "--cwd (TMUX_DEBUG_CWD) is '/no/such', which is not a directory that can be "
                "entered. Give one that exists."
            ),
        ),
        (
            ["--audit", "~nobody-of-this-name/audit"],
            (
                "'~nobody-of-this-name/audit' begins with the home directory of an unknown user. "
                "Give an absolute path."
            ),
        ),
        (["--env", "NAME"], "--env (TMUX_DEBUG_ENV) has 'NAME', which is not NAME=VALUE."),
        (
            ["--env", "A='1"],
            (
                "--env (TMUX_DEBUG_ENV) can't be read (No closing quotation). Give NAME=VALUE, "
                "quoted as in a shell."
            ),
        ),
        (
            ["--shell", "/no/shell"],
            (
                "--shell (TMUX_DEBUG_SHELL) is '/no/shell', which can't be run. "
                "Give the path of a shell."
            ),
        ),
        (
            ["--toolsets", "tmux", "--socket", "default", "--env", "A=1"],
            (
                "--env (TMUX_DEBUG_ENV) can't be used with --socket: programs get their "
                "environment and their shell from the user's own tmux server. Omit one of the two."
            ),
        ),
        (
            ["--toolsets", "debug,tabs", "--socket", "/x", "--shell", "/bin/sh"],
            "--shell (TMUX_DEBUG_SHELL) can't be used with --socket: ",
        ),
        (
            ["--allow-kill"],
            (
                "--allow-kill needs --socket. On the private tmux server, everything may be "
                "killed. Omit --allow-kill."
            ),
        ),
        (
            ["--toolsets", "tmux", "--socket", "mine.sock"],
            (
                "--socket 'mine.sock' may mean a file here or a name for tmux -L. "
                "Give a path: ./mine.sock or "
            ),
        ),
        (
            ["--socket", "default"],
            (
                "--socket needs the toolset tmux or tabs. Choose one with --toolsets, or omit "
                "--socket.\n"
            ),
        ),
        (
            ["--toolsets", "debug,tmux"],
            (
                "Toolsets 'debug' and 'tmux' both have a tool 'tmux_list_panes'. "
                "Choose one of the two.\n"
            ),
        ),
        (
            ["--toolsets", "tab"],
            "There is no toolset 'tab'. Choose from debug, tabs, terminal, tmux.\n",
        ),
    ],
)
def test_value_that_an_option_can_not_have_is_one_sentence(
    refused: Refused, arguments: list[str], complaint: str
) -> None:
    status, message = refused(*arguments)

    assert status == 1
    assert message.startswith(f"tmux-debug-mcp: {complaint}")


@pytest.mark.parametrize("word", ["n", "maybe", " "])
def test_word_that_may_mean_anything_allows_nothing(refused: Refused, word: str) -> None:
    told = refused("--toolsets", "tmux", "--socket", "default", TMUX_DEBUG_ALLOW_KILL=word)

    assert told == (1, f"tmux-debug-mcp: TMUX_DEBUG_ALLOW_KILL is '{word}'. Set it to 1 or 0.\n")


@pytest.mark.parametrize(
    ("words", "variable", "is_allowed"),
    [
        ([], "", False),
        ([], "0", False),
        ([], "no", False),
        ([], "1", True),
        (["--allow-kill"], "", True),
        (["--allow-kill"], "0", True),
    ],
)
def test_killing_is_allowed_by_a_switch(
    words: list[str], variable: str, *, is_allowed: bool
) -> None:
    environ = {"TMUX_DEBUG_ALLOW_KILL": variable, "TMUX_DEBUG_TOOLSETS": "terminal, tmux"}
    settings, toolsets = checked(parse(["--socket", "/x", *words], environ)[0], environ)

    assert settings.allows_kill is is_allowed
    assert [toolset.name for toolset in toolsets] == ["terminal", "tmux"]


def test_default_session_is_as_the_options_have_it(
    launch: Callable[..., Server], tmp_path: Path
) -> None:
    (tmp_path / "here").mkdir()
    options = {
        "CWD": str(tmp_path / "here"),
        "ENV": "A=1 'B=two words'",
        "SHELL": "dash",
        "SIZE": "90x30",
    }
    server = launch(
        "--toolsets", "terminal", **{f"TMUX_DEBUG_{name}": value for name, value in options.items()}
    ).start()
    server.call_tool("type", text="echo $A-$B-$PWD-${SHELL##*/}-$(ps -o comm= $$)-$(stty size)-\n")
    wanted = f"\n1-two words-{tmp_path}/here-dash-dash-30 90-\n"

    def content() -> str:
        return str(server.call_tool("getContent")["content"][0]["text"])

    assert wanted in ask_until(content, lambda shown: "-30 90-" in shown.replace("\n", ""))

    shot = json.loads(server.call_tool("takeScreenshot")["content"][0]["text"])
    assert shot["dimensions"] == {"cols": 90, "rows": 30}


def test_size_by_default_is_that_of_the_toolset() -> None:
    [size] = [option.default for option in OPTIONS if option.flag == "size"]

    columns, rows = Settings({}, Path()).size
    assert size == f"{columns}x{rows}"
