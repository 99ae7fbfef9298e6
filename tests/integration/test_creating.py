"""Panes come to be as they were asked for."""

import os
import re
import resource
import shutil
import signal
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest
from clocks import TIMES
from support import (
    PATIENCE_S,
    Tools,
    eventually,
    few_files,
    in_process,
    marked,
    python,
    run_directories,
    texts,
    until,
)

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.panes import creation
from tmux_debug_mcp.panes.creation import MAX_COMMAND_BYTES
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.tmux.client import ControlClient
from tmux_debug_mcp.tmux.host import TmuxHost


async def test_confirmation_names_pane_and_id(tools: Tools) -> None:
    named = await tools.blocks(
        "create_pane", command="exec sleep 60", name="server", timeout_s=PATIENCE_S
    )
    unnamed = await tools.blocks("create_pane", command="exec sleep 60", timeout_s=0)
    in_words = await tools.blocks("create_pane", command="cat", name="my web", timeout_s=0)

    assert named[0] == "Created pane 'server' (id: debug-1)"
    assert unnamed[0] == "Created pane 'debug-2' (id: debug-2)"
    assert re.fullmatch(
        r"\[debug-1 server running \d+\.\d s, foreground sleep \(pid \d+\), sleeps; "
        r"at rest; cursor 0\]",
        named[1],
    )
    assert unnamed[1].startswith("[debug-2 running ")
    assert in_words[1].startswith("[debug-3 'my web' running ")


ENDINGS = {
    "exit 0": "exited with code 0",
    "exit 3": "exited with code 3",
    "exit 255": "exited with code 255",
    "no-such-command": "exited with code 127",
    "kill -SEGV $$": "killed by SIGSEGV",
    "kill -KILL $$": "killed by SIGKILL",
    "exit 139": "killed by SIGSEGV",
    "printf '\\033]0;unfinished'; exit 4": "exited with code 4",
    "printf '\\033Punfinished'; exit 4": "exited with code 4",
    "printf '\\303'; exit 4": "exited with code 4",
    "exec 0<&- 1>&- 2>&-; exit 4": "exited with code 4",
    "-x": "exited with code 127",
}


async def test_program_that_dies_young_is_told_at_once(tools: Tools) -> None:
    for number, (command, ending) in enumerate(ENDINGS.items(), start=1):
        answer = await tools.blocks("create_pane", command=command)

        assert answer[-1].startswith(f"[debug-{number} {ending} after "), command


async def test_the_shell_adds_nothing_to_what_a_crash_shows(tools: Tools) -> None:
    pane_id = await tools.create("kill -SEGV $$")

    assert await tools.capture(pane_id) == ""


async def test_last_line_and_exit_status_of_thirty_short_lived_panes_under_load(
    tools: Tools,
) -> None:
    hogs = [await tools.create("while :; do :; done") for _ in range(3)]

    async def one(number: int) -> None:
        pane_id = await tools.create(f"seq 1 {number}; echo last {number}; exit {number}")
        state = await tools.exited(pane_id)
        assert (state["exit_code"], (await tools.capture(pane_id, lines=1))) == (
            number,
            f"last {number}",
        )
        await tools.blocks("kill_pane", pane_id=pane_id)

    for start in range(0, 30, 10):
        async with anyio.create_task_group() as tasks:
            for number in range(start, start + 10):
                tasks.start_soon(one, number)
    assert len(hogs) == len(tools.engine.panes)


async def test_forty_creates_in_flight_give_forty_panes(tools: Tools) -> None:
    ids: list[str] = []

    async def one(number: int) -> None:
        pane_id = await tools.create(f"echo I am {number}; cat", name=f"pane-{number}")
        assert await tools.shows(f"pane-{number}", "I am") == f"I am {number}"
        ids.append(pane_id)

    async with anyio.create_task_group() as tasks:
        for number in range(40):
            tasks.start_soon(one, number)

    assert sorted(ids) == sorted(f"debug-{number}" for number in range(1, 41))


async def test_environment_and_directory_are_as_asked(tools: Tools, tmp_path: Path) -> None:
    odd = tmp_path / "#(touch pwned) $(touch pwned) 'a\"\n日;"
    odd.mkdir()
    value = "#{pid} $HOME 'x' \"y\" \n\t;"

    pane_id = await tools.create(
        'printf "%s|" "$ODD" && pwd', cwd=str(odd), env={"ODD": value, "EMPTY": ""}
    )

    await tools.exited(pane_id)
    log = tools.engine.panes[0].log.read(0, 10_000).decode()
    assert log.split("\033")[0].replace("\r\n", "\n") == f"{value}|{odd}\n"
    assert not list(tmp_path.rglob("pwned"))


async def test_relative_directory_is_below_the_servers_and_tilde_is_home(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "below").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "below"))

    for cwd in ("below", "~", "./below/../below"):
        pane_id = await tools.create("pwd -P", cwd=cwd)
        await tools.exited(pane_id)
        assert (await tools.capture(pane_id)).replace("\n", "") == str(tmp_path / "below")


NAMES = ["a b", "#(touch pwned)", "'; touch pwned; '", "日本", "%1", "@1", "-n", "x" * 64, "0"]


async def test_any_printable_name_is_a_name(tools: Tools, tmp_path: Path) -> None:
    for name in NAMES:
        pane_id = await tools.create("cat", name=name)

        await tools.send(name, "hello Enter")

        assert await tools.shows(name, "hello\nhello") == await tools.capture(pane_id), name
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "Parameter 'command' is missing. tmux_create_pane needs command."),
        ({"command": 7}, "Parameter 'command' is 7. It must be a string that is not empty."),
        ({"command": ""}, "Parameter 'command' is \"\". It must be a string that is not empty."),
        ({"command": " \n"}, "Parameter 'command' is blank."),
        ({"command": "a\0b"}, "Parameter 'command' contains a NUL character"),
        (
            {"command": "x" * (MAX_COMMAND_BYTES + 1)},
            "Parameter 'command' has 131072 bytes; the limit is 131071.",
        ),
        (
            {"command": "cat", "name": ""},
            "Parameter 'name' is \"\". It must be a string of 1 to 64 characters",
        ),
        ({"command": "cat", "name": "x" * 65}, "a string of 1 to 64 characters."),
        (
            {"command": "cat", "name": "a\nb"},
            "Parameter 'name' is 'a\\nb'. It must be printable and not blank.",
        ),
        (
            {"command": "cat", "name": "debug-7"},
            "Parameter 'name' is 'debug-7', which looks like an id.",
        ),
        (
            {"command": "cat", "cwd": "/no/such"},
            "Parameter 'cwd' is '/no/such', which is not a directory.",
        ),
        ({"command": "cat", "cwd": "x" * 5000}, "which is not a directory."),
        (
            {"command": "cat", "env": {"A": 1}},
            "Parameter 'env.A' is a number, not shown. It must be a string.",
        ),
        (
            {"command": "cat", "env": {"A=B": "1"}},
            "Parameter 'env' has an entry \"A=…\", which can't be a variable's name.",
        ),
        (
            {"command": "cat", "env": {"A": "x" * 32769}},
            "Parameter 'env.A' has 32769 bytes; the limit is 32768.",
        ),
        ({"command": "cat", "env": {f"A{n}": "" for n in range(257)}}, "with at most 256 entries"),
        (
            {"command": "cat", "env": {f"A{n}": "x" * 32768 for n in range(100)}},
            "Put large values into files.",
        ),
        (
            {"command": "cat", "env": "A=1"},
            "Parameter 'env' is a string, not shown. It must be an object",
        ),
        (
            {"command": "cat", "wait": 1},
            (
                "tmux_create_pane has no parameter 'wait'. "
                "It takes command, name, cwd, env, size, wait_for, port, show, timeout_s."
            ),
        ),
    ],
)
async def test_bad_arguments_are_told_by_name_value_and_what_is_wanted(
    tools: Tools, arguments: dict[str, object], sentence: str
) -> None:
    assert sentence in await tools.error("create_pane", **arguments)
    assert await tools.blocks("list_panes") == [
        "No active panes. Use tmux_create_pane to start one."
    ]


async def test_largest_command_and_a_null_option_are_taken(tools: Tools) -> None:
    command = "exit 3 #".ljust(MAX_COMMAND_BYTES, "x")

    answer = await tools.blocks("create_pane", command=command, name=None, env=None)

    assert answer[0] == "Created pane 'debug-1' (id: debug-1)"
    assert "exited with code 3" in answer[1]


async def test_panes_inherit_a_locale_and_the_limit_of_files_but_nothing_of_tmux(
    tools: Tools,
) -> None:
    pane_id = await tools.create("env; ulimit -S -n; umask")
    await tools.exited(pane_id)
    text = await tools.capture(pane_id, lines=1000)

    assert "\nTMUX" not in f"\n{text}"
    assert "LC_CTYPE=C.UTF-8" in text
    assert text.split("\n")[-2] == str(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


async def test_panes_do_not_have_the_variables_of_a_person_who_has_attached(
    settings: Settings,
) -> None:
    env = {**settings.env, "SSH_AUTH_SOCK": "/the/callers"}
    async with in_process(replace(settings, env=env)) as tools:
        await tools.blocks("create_pane", command="exec cat")
        client = tools.engine.host.client
        assert client
        # As control mode clients have it, which need no terminal.
        words = ["tmux", "-S", f"{client.directory}/tmux", "-C", "attach-session"]
        theirs = env | {"SSH_AUTH_SOCK": "/the/persons", "DISPLAY": ":7"}
        with anyio.fail_after(PATIENCE_S):
            async with await anyio.open_process(words, env=theirs) as person:
                assert person.stdout
                assert person.stdin
                shown = b""
                while b"%session-changed" not in shown:
                    shown += await person.stdout.receive()

                run = await tools.blocks("run", command="echo $SSH_AUTH_SOCK $DISPLAY")

                await person.stdin.aclose()
    assert run[0] == f"/the/callers {settings.env.get('DISPLAY', '')}".rstrip() + "\n"


@pytest.mark.parametrize("has_bash", [True, False])
def test_commands_run_in_a_shell_that_is_there(tmp_path: Path, *, has_bash: bool) -> None:
    for name in ("bash", "zsh", "ksh", "dash", "fish", "csh"):
        (tmp_path / name).symlink_to("/bin/sh")
    if not has_bash:
        (tmp_path / "bash").unlink()
    env = {"PATH": str(tmp_path)}
    shells = {
        name: creation.command_shell(env | {"SHELL": str(tmp_path / name)})
        for name in ("bash", "zsh", "ksh", "dash", "fish", "csh", "")
    }

    other = str(tmp_path / "bash") if has_bash else "/bin/sh"
    known = {name: str(tmp_path / name) for name in ("zsh", "ksh", "dash")}
    assert shells == {"bash": other, "fish": other, "csh": other, "": other, **known}


@pytest.mark.parametrize("shell", ["bash", "dash", "/no/such/bash", "false", ""])
async def test_command_runs_with_the_users_shell_where_it_is_a_posix_one(
    settings: Settings, shell: str
) -> None:
    path = shutil.which(shell) or shell
    async with in_process(Settings(dict(settings.env) | {"SHELL": path}, settings.cwd)) as tools:
        pane_id = await tools.create("echo $0; exit 6")
        assert (await tools.exited(pane_id))["exit_code"] == 6
        expected = path if shell == "dash" else "bash"
        assert (await tools.capture(pane_id)).endswith(expected)


async def test_one_pane_too_many_takes_the_place_of_the_oldest_that_has_ended(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmux_debug_mcp.panes.engine.MAX_PANES", 32)

    async def one() -> None:
        await tools.create("exit 0")

    async with anyio.create_task_group() as tasks:
        for _ in range(32):
            tasks.start_soon(one)

    assert await tools.create("cat") == "debug-33"
    assert len(tools.engine.panes) == 32
    assert "'debug-1' not found" in await tools.error("capture_pane", pane_id="debug-1")


async def test_flood_in_a_pane_does_not_hold_up_other_calls(tools: Tools) -> None:
    await tools.create("yes 0123456789012345678901234567890123456789")
    pane_id = await tools.create("cat")

    with anyio.fail_after(PATIENCE_S):
        for number in range(50):
            await tools.send(pane_id, f"line {number} Enter")
            await tools.shows(pane_id, f"line {number}\nline {number}")


async def test_cancelled_create_leaves_a_pane_that_is_listed(tools: Tools) -> None:
    with anyio.move_on_after(0.001):
        await tools.create(python("import time; time.sleep(60)"))
    await eventually(lambda: bool(tools.engine.panes))

    assert "debug-1" in (await tools.blocks("list_panes"))[0]


async def test_tmux_that_can_not_start_is_an_error_with_its_words(settings: Settings) -> None:
    async with in_process(Settings(settings.env, settings.cwd, tmux="/bin/no-tmux")) as tools:
        error = await tools.error("create_pane", command="cat")

    assert error == (
        "tmux did not start: /bin/no-tmux: No such file or directory. No pane was made. "
        "Ask the user to check that tmux works."
    )


async def test_tmux_that_fails_once_is_started_by_the_next_create(
    settings: Settings, tmp_path: Path
) -> None:
    tmux = tmp_path / "tmux-wrapper"
    tmux.write_text(
        f"#!/bin/sh\n[ -e {tmp_path}/tried ] || {{ touch {tmp_path}/tried; echo boom >&2; "
        f'exit 1; }}\nexec tmux "$@"\n'
    )
    tmux.chmod(0o755)
    async with in_process(Settings(settings.env, settings.cwd, tmux=str(tmux))) as tools:
        assert "tmux did not start: boom" in await tools.error("create_pane", command="cat")
        assert (await tools.create("cat")).startswith("debug-")


async def test_start_of_tmux_that_is_cancelled_leaves_no_process_and_the_next_one_works(
    tools: Tools, census: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_running = anyio.Event()

    async def configure(_host: TmuxHost, _client: ControlClient) -> None:
        is_running.set()
        await anyio.sleep_forever()

    with monkeypatch.context() as context:
        context.setattr(TmuxHost, "_configure", configure)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tools.engine.host.connected)
            await is_running.wait()
            assert [process for process in marked(census) if "new-session" in process]
            tasks.cancel_scope.cancel()
    await eventually(lambda: not list(marked(census)))
    assert not run_directories(os.getpid())

    pane_id = await tools.create("cat")
    assert len(run_directories(os.getpid())) == 1
    await tools.send(pane_id, "hello Enter")
    await tools.shows(pane_id, "hello\nhello")


async def test_tmux_that_never_answers_is_an_error_and_not_the_end(
    settings: Settings, tmp_path: Path
) -> None:
    tmux = tmp_path / "tmux-wrapper"
    tmux.write_text("#!/bin/sh\nexec sleep 1001\n")
    tmux.chmod(0o755)
    clock = Clock(replace(TIMES, tmux_start_s=0.2))
    async with in_process(replace(settings, tmux=str(tmux)), clock=clock) as tools:
        for _ in range(3):
            assert "tmux did not start: it said nothing" in await tools.error(
                "create_pane", command="cat"
            )


@pytest.mark.parametrize("free", range(10))
async def test_start_of_tmux_that_runs_out_of_files_opens_none(tools: Tools, free: int) -> None:
    before = os.listdir("/proc/self/fd")
    with few_files(free):
        result = await tools.call("create_pane", command="cat", timeout_s=0)

    if result.is_error:
        assert texts(result)[0].startswith("Too many files are open")
        assert os.listdir("/proc/self/fd") == before
    await tools.create("cat")


async def test_supervisor_that_can_not_start_is_an_error_that_says_why(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.listdir("/proc/self/fd")
    with monkeypatch.context() as context:
        context.setattr(sys, "executable", "/no/python")
        error = await tools.error("create_pane", command="cat")

    assert "tmux did not start: [Errno 2] No such file or directory: '/no/python'" in error
    assert os.listdir("/proc/self/fd") == before


async def test_tmux_that_answers_what_nobody_asked_is_lost_and_the_server_goes_on(
    settings: Settings, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tmux = tmp_path / "tmux-wrapper"
    tmux.write_text(
        f"#!/bin/sh\n[ -e {tmp_path}/tried ] || {{ touch {tmp_path}/tried; "
        "answer='%%begin 1 1 1\\n$0 999999999 3.3\\n%%end 1 1 1\\n'; "
        'printf "$answer$answer$answer"; }\n'
        'exec tmux "$@"\n'
    )
    tmux.chmod(0o755)
    async with in_process(Settings(settings.env, settings.cwd, tmux=str(tmux))) as tools:
        assert "tmux did not start" in await tools.error("create_pane", command="cat")
        assert (await tools.create("cat")).startswith("debug-")

    assert "Traceback" in capfd.readouterr().err


async def test_names_of_variables_that_no_shell_knows_arrive(settings: Settings) -> None:
    inherited = Settings(dict(settings.env) | {"spring.profile": "dev"}, settings.cwd)
    async with in_process(inherited) as tools:
        await tools.exited(await tools.create("env", env={"a-b": "1 2", "TMUX": "mine"}))
        text = await tools.capture("debug-1", lines=1000)

    assert {"a-b=1 2", "TMUX=mine", "spring.profile=dev"} <= set(text.split("\n"))


async def test_command_that_signals_its_own_group_ends_as_it_says(tools: Tools) -> None:
    pane_id = await tools.create("trap 'echo bye' TERM; kill 0; echo last; exit 3")

    assert (await tools.exited(pane_id))["exit_code"] == 3
    assert await tools.capture(pane_id) == "bye\nlast"


async def test_terminal_that_was_stopped_by_control_s_does_not_hide_the_end(tools: Tools) -> None:
    pane_id = await tools.create("read x; exit 7")
    await tools.send(pane_id, "C-s")
    await tools.send(pane_id, "Enter")

    assert (await tools.exited(pane_id))["exit_code"] == 7


async def test_invalid_mark_of_a_program_is_none(tools: Tools) -> None:
    forge = (
        "m=$(tr '\\0' ' ' </proc/$PPID/cmdline | cut -d' ' -f3); "
        "printf '\\033\\\\\\033]7777;%s;%s\\007' $m"
    )
    pane_id = await tools.create(f"{forge} x; {forge} -5; {forge} 999; exit 4")

    assert (await tools.exited(pane_id))["exit_code"] == 4


async def test_run_time_of_a_silent_program_that_was_killed_is_not_nothing(tools: Tools) -> None:
    pane_id = await tools.create("sleep 0.5; kill -9 $PPID; sleep 60")

    state = await tools.exited(pane_id)

    assert (state["signal"], state["runtime_s"] >= 0.5) == ("SIGKILL", True)


async def test_directory_whose_name_is_no_text_is_a_directory(
    settings: Settings, tmp_path: Path
) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff"))
    odd.mkdir()
    async with in_process(Settings(settings.env, odd)) as tools:
        assert (await tools.exited(await tools.create("exit 3")))["exit_code"] == 3


async def test_killed_tmux_loses_its_panes_and_the_next_create_starts_another(tools: Tools) -> None:
    await tools.create("cat")
    await tools.create("exit 3", timeout_s=PATIENCE_S)
    os.kill(tools.engine.panes[0].client.server_pid, signal.SIGKILL)
    capture = partial(tools.call, "capture_pane", pane_id="debug-1")
    await until(capture, lambda result: "was lost" in texts(result)[-1])

    assert "was lost" in await tools.error("send_keys", pane_id="debug-1", keys="x")
    assert await tools.create("cat") == "debug-3"
    running, lost, exited = (await tools.blocks("list_panes"))[0].split("},")
    assert '"status":"running"' in running
    assert '"status":"exited"' in lost
    assert '"lost":true' in lost
    assert '"exit_code":3' in exited
    assert "was lost" in (await tools.blocks("kill_pane", pane_id="debug-1"))[0]


async def test_flood_keeps_the_end_of_its_log_and_the_disk_free(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmux_debug_mcp.logs.retention.MAX_LOG_BYTES", 1 << 20)
    pane_id = await tools.create("yes 0123456789 | head -n 500000; echo last; exit 3")
    assert (await tools.exited(pane_id))["exit_code"] == 3
    log = tools.engine.panes[0].log

    await eventually(lambda: log.kept_bytes <= (1 << 20) + 8192)
    assert log.size > 5_000_000
    assert os.fstat(log.fd).st_blocks * 512 <= (1 << 20) + 65536
    assert await tools.capture(pane_id, lines=1) == "last"


async def test_program_has_the_default_actions_of_signals(tools: Tools) -> None:
    """So a process that reads the terminal in the background stops, as in any terminal."""
    pane_id = await tools.create("grep SigIgn: /proc/self/status; exec sleep 60", wait_for="SigIgn")
    ignored = int((await tools.capture(pane_id)).split()[1], 16)
    assert ignored == 0

    reads = python(
        "import subprocess, sys\n"
        "read = [sys.executable, '-c', 'import getpass; getpass.getpass()']\n"
        "subprocess.run(read, process_group=0)"
    )
    pane_id = await tools.create(reads)
    pane = await tools.engine.find(pane_id)

    def is_stopped() -> bool:
        stats = map(processes.read_stat, processes.descendants(pane.leader.pid))
        return "T" in {stat.state for stat in stats if stat}

    await eventually(is_stopped)


async def test_functions_that_the_user_has_exported_do_not_run_in_pane_sh_where_sh_is_bash(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sh").symlink_to(shutil.which("bash") or "")
    monkeypatch.setattr(creation, "_SH", str(tmp_path / "sh"))
    commands = ("[", "cd", "command", "printf", "read", "ulimit")
    functions = {f"BASH_FUNC_{name}%%": "() { echo of the user; }" for name in commands}
    env = {**settings.env, **functions}

    async with in_process(replace(settings, env=env)) as tools:
        pane_id = await tools.create("bash -c 'cd /; exit 3'")
        state = await tools.exited(pane_id)
        text = await tools.capture(pane_id)

    assert text == "of the user"
    assert state["exit_code"] == 3
