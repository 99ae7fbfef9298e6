"""What programs await, as the kernel tells it: real programs, of which half await nothing."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest
from clocks import with_times
from support import PATIENCE_S, Gate, Tools, eventually, in_process, python, run, until

from tmux_debug_mcp.panes.looking.activity import Awaits, Snapshot
from tmux_debug_mcp.settings import Settings

# Programs that have come to where they are after this long are not about to claim something else.
LOOKS, LOOK_S = 20, 0.05

INPUT, HIDDEN, KEYS, NOTHING = "input", "hidden input", "keys", None


def bash(script: str) -> str:
    return f"bash --norc -c {shlex.quote(script)}"


def node(program: str) -> str:
    return f"node -e {shlex.quote(program)}"


GETPASS = "import getpass; getpass.getpass('Password: ')"
# A daemon opens the terminal by its name and reads it, and the program waits for the daemon. So do
# gpg and its agent.
ASKING_A_DAEMON = """import os, {modules}
name = os.ttyname(0)
answer, answering = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        terminal = os.open(name, os.O_RDWR | os.O_NOCTTY)
        os.closerange(0, 3)
        {reads}
    os._exit(0)
os.close(answering)
os.read(answer, 1)"""


def asking_a_daemon(reads: str, *modules: str) -> str:
    return python(ASKING_A_DAEMON.format(reads=reads, modules=", ".join(("sys", *modules))))


AWAITING = {
    "cat": ("cat", INPUT),
    "sort": ("cat | sort", INPUT),
    "tee": ("tee /dev/null", INPUT),
    "wc": ("exec wc", INPUT),
    "bash read": (bash("read -p 'name? ' x; echo $x"), INPUT),
    "bash read of the terminal": (bash("read x </dev/tty; echo $x"), INPUT),
    "bash select": (bash("select x in one two; do break; done"), INPUT),
    "bash secret": (bash("read -sp 'Password: ' x; echo"), HIDDEN),
    "bash one key": (bash("read -n1 -p 'Go on? ' x; echo"), KEYS),
    "dash read": ("dash -c 'read x; echo $x'", INPUT),
    "zsh read": ("zsh -fc 'read x; echo $x'", INPUT),
    "rm -i": ("touch rmi; rm -i rmi; :", INPUT),
    "python input": (python("input('name? ')"), INPUT),
    "python input with readline": (python("import readline; input('name? ')"), KEYS),
    "python secret": (python(GETPASS), HIDDEN),
    "python thread": (python("import threading; threading.Thread(target=input).start()"), INPUT),
    "python select": (python("import select, sys; select.select([sys.stdin], [], [])"), INPUT),
    "python poll": (python("import select; p = select.poll(); p.register(0, 1); p.poll()"), INPUT),
    "python epoll": (
        python("import select; p = select.epoll(); p.register(0, 1); p.poll()"),
        INPUT,
    ),
    "python raw": (python("import os, tty; tty.setraw(0); os.read(0, 1)"), KEYS),
    "python prompt": (f"exec {shlex.quote(sys.executable)} -q", KEYS),
    "pdb": (python("breakpoint(); x = 1"), KEYS),
    "curses": (python("import curses; curses.wrapper(lambda screen: screen.getch())"), KEYS),
    "curses with a timeout": (
        python(
            "import curses\ndef f(s):\n s.timeout(100)\n while s.getch() < 0: pass\n"
            "curses.wrapper(f)"
        ),
        KEYS,
    ),
    "bash": ("bash --norc", KEYS),
    "zsh": ("zsh -f", KEYS),
    "fish": ("fish --no-config", KEYS),
    "dash": ("dash", INPUT),
    "busybox sh": ("busybox sh", KEYS),
    "busybox vi": ("busybox vi", KEYS),
    "busybox cat": ("busybox cat", INPUT),
    "busybox more": ("seq 1000 | busybox more", KEYS),
    "busybox less": ("seq 1000 >seq; busybox less seq", KEYS),
    "vim": ("$(command -v vim || command -v vim.tiny) -u NONE -N", KEYS),
    "less": ("seq 1000 | less", KEYS),
    "top": ("top", KEYS),
    "htop": ("htop", KEYS),
    "dialog": ("dialog --yesno Sure 8 40", KEYS),
    "dialog password": ("dialog --passwordbox Secret 8 40", KEYS),
    "session without a terminal": ("setsid -w cat", INPUT),
    "daemon": (asking_a_daemon("os.read(terminal, 1)"), INPUT),
    "daemon that polls": (
        asking_a_daemon("select.select([terminal], [], [], 99)", "select"),
        INPUT,
    ),
    "daemon's secret": (
        asking_a_daemon(
            "m = termios.tcgetattr(terminal); m[3] &= ~termios.ECHO; "
            "termios.tcsetattr(terminal, termios.TCSANOW, m); os.read(terminal, 1)",
            "termios",
        ),
        HIDDEN,
    ),
    "daemon's keys": (
        asking_a_daemon("tty.setraw(terminal); os.read(terminal, 1)", "tty"),
        KEYS,
    ),
    "script": (f"script -qc {shlex.quote(bash('read -p name? x'))} /dev/null", INPUT),
    "script with a secret": (
        f"script -qc {shlex.quote(bash('read -sp Password: x'))} /dev/null",
        HIDDEN,
    ),
}
IDLE = {
    "sleep": "sleep 1000",
    "sleep behind a question": "printf 'Continue? [y/N] '; exec sleep 1000",
    "sleep behind a password": "printf 'Password: '; exec sleep 1000",
    "sleep behind a prompt": "printf '>>> '; exec sleep 1000",
    "sleep behind a shell": "printf '$ '; sleep 1000; :",
    "sleep without echo": "stty -echo; printf 'Password: '; exec sleep 1000",
    "sleep in raw mode": "stty raw -echo; exec sleep 1000",
    "tail": "touch log; exec tail -f log",
    "tail of itself": "exec tail -F /etc/hostname",
    "loop": "while :; do sleep 0.05; done",
    "server": python("import http.server; http.server.test(port=0, bind='127.0.0.1')"),
    "socket": python("import socket; s = socket.create_server(('127.0.0.1', 0)); s.accept()"),
    "asyncio": python("import asyncio; asyncio.run(asyncio.sleep(1000))"),
    "asyncio server": python(
        "import asyncio\nasync def serve():\n"
        " server = await asyncio.start_server(print, '127.0.0.1')\n"
        " await server.serve_forever()\nasyncio.run(serve())"
    ),
    "threads": python(
        "import threading; [threading.Thread(target=threading.Event().wait).start() "
        "for _ in range(8)]"
    ),
    "lock": python("import threading; threading.Lock().acquire(); threading.Event().wait()"),
    "pipe": python("import os; os.read(os.pipe()[0], 1)"),
    "input from elsewhere": "sleep 1000 | cat",
    "input from a file": "mkfifo p; cat p",
    "reader in the background": "cat & sleep 1000",
    "poller in the background": bash(
        f"set -m; {python('import select; select.select([0], [], [])')} & sleep 1000"
    ),
    "nested tmux": "exec tmux -S socket -f /dev/null new-session cat",
    "poll for output": python(
        "import select; p = select.poll(); p.register(0, 4); p.poll(); import time; time.sleep(99)"
    ),
    "poll without a terminal": python(
        "import os, select; r, _ = os.pipe(); select.select([r], [], [])"
    ),
    "epoll without a terminal": python(
        "import os, select; e = select.epoll(); e.register(os.pipe()[0], 1); e.poll()"
    ),
    "ticker": python("import time\nwhile True: print('Password:', flush=True); time.sleep(0.02)"),
    "progress": python(
        "import time\nwhile True: print('\\r50% ? ', end='', flush=True); time.sleep(0.03)"
    ),
    "stopped": "kill -STOP $$; cat",
    "waiting for a child": python("import subprocess; subprocess.run(['sleep', '1000'])"),
    "signal": python("import signal; signal.pause()"),
    "lock after a signal": python(
        "import os, signal, subprocess, threading\nnumber = os.getpid()\n"
        "subprocess.Popen(['sh', '-c', f'sleep 0.2; kill -STOP {number}; kill -CONT {number}'])\n"
        "threading.Event().wait(1000)"
    ),
    "short threads without echo": "stty -echo; "
    + python(
        "import time\nfrom concurrent.futures import ThreadPoolExecutor as Pool\n"
        "while True:\n with Pool(8) as pool: list(pool.map(lambda _: time.sleep(0.001), range(8)))"
    ),
    "watch": "exec watch -n 1000 true </dev/null",
    "wait": bash("sleep 1000 & wait"),
    "spinner": bash(
        "while :; do for c in / - '|'; do printf '\\r%s' \"$c\"; sleep 0.03; done; done"
    ),
    "detached from its terminal": "setsid -w sleep 1000",
}
# They take both processors for as long as they are looked at, so the others are not beside them.
BUSY = {"flood": "exec yes", "busy": python("while True: pass")}


@pytest.mark.parametrize("name", AWAITING)
async def test_what_a_program_awaits_is_told_and_nothing_else(
    tools: Tools, tmp_path: Path, name: str
) -> None:
    command, expected = AWAITING[name]
    pane_id = await tools.create(command, cwd=str(tmp_path))
    [pane] = tools.engine.panes
    claims = set()
    state = await until(pane.state, lambda state: bool(state.awaits) or not state.is_running)
    assert state.is_running
    for _ in range(5):
        claims.add((await pane.state()).awaits)
        await anyio.sleep(0.02)  # between looks, which must not differ

    assert {claim and claim.value for claim in claims} - {None} == {expected}, await tools.capture(
        pane_id
    )


# Programs that wait for more than the terminal, but sleep until a key comes, and keys for them.
LOOPS = {
    "node": (
        node("process.stdin.setRawMode(true).pipe(process.stdout)"),
        "x",
    ),
    "node readline": (
        node("require('readline').createInterface(process.stdin, process.stdout).prompt()"),
        "x",
    ),
    "select": (
        python(
            "import os, select, tty; tty.setraw(0)\n"
            "while select.select([0], [], [], 999): os.write(1, os.read(0, 1))"
        ),
        "x",
    ),
    "asyncio": (
        python(
            "import asyncio, os, tty; tty.setraw(0); loop = asyncio.new_event_loop()\n"
            "loop.add_reader(0, lambda: os.write(1, os.read(0, 1))); loop.run_forever()"
        ),
        "x",
    ),
    "vim": ("$(command -v vim || command -v vim.tiny) -u NONE -N", "i"),
    "htop": ("htop -d 300", "Down"),
    "top": ("top -d 30", "1"),
}


@with_times(quiet_s=2 * PATIENCE_S)  # none of them is found to be ready because it is quiet
@pytest.mark.parametrize("name", LOOPS)
async def test_loop_that_only_keys_wake_gets_the_next_step_without_having_been_quiet(
    tools: Tools, tmp_path: Path, name: str
) -> None:
    command, key = LOOPS[name]
    pane_id = await tools.create(command, cwd=str(tmp_path))
    [pane] = tools.engine.panes
    await until(pane.state, lambda state: state.awaits is Awaits.KEYS)

    blocks, facts = await tools.answer(
        "send_keys", pane_id=pane_id, keys=[key, key, key], timeout_s=PATIENCE_S
    )

    assert blocks[0] == f"Sent keys to pane '{pane_id}'"
    assert (facts["reason"], facts["awaits"]) == ("input", "keys")


# Each key has a thread work until the gate is open.
WORKING_IN_A_THREAD = """import os, select, sys, threading, tty
def work():
    open(sys.argv[1]).read()
    os.write(1, b'c')
tty.setraw(0)
while True:
    select.select([0], [], [], 999)
    os.write(1, os.read(0, 1))
    threading.Thread(target=work).start()"""


@with_times(quiet_s=2 * PATIENCE_S)
async def test_loop_with_a_thread_at_work_gets_no_step_before_that_is_done(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(tmp_path / "gate")
    pane_id = await tools.create(f"{python(WORKING_IN_A_THREAD)} {gate}")
    [pane] = tools.engine.panes
    await until(pane.state, lambda state: state.awaits is Awaits.KEYS)
    looks: list[Snapshot] = []
    look = pane.terminal.snapshot

    def noted() -> Snapshot:
        looks.append(look())
        return looks[-1]

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(tools.send, pane_id, ["a", "b"], timeout_s=PATIENCE_S))
        await tools.shows(pane_id, "a")
        monkeypatch.setattr(pane.terminal, "snapshot", noted)
        await eventually(lambda: len(looks) > LOOKS)
        shown = await tools.capture(pane_id)
        await gate.open()
        await tools.shows(pane_id, "acb")
        await gate.open()

    assert shown == "a"
    assert {seen.sleeps_s for seen in looks[:LOOKS]} == {0}


@pytest.mark.parametrize("programs", [IDLE, BUSY], ids=["idle", "busy"])
async def test_what_awaits_nothing_is_never_said_to(
    tools: Tools, tmp_path: Path, programs: dict[str, str]
) -> None:
    for name, command in programs.items():
        (tmp_path / name).mkdir()
        await tools.create(command, cwd=str(tmp_path / name), name=name)
    false_claims = set()
    for _ in range(LOOKS):
        for pane in tools.engine.panes:
            state = await pane.state()
            assert state.is_running, pane.name
            if state.awaits:
                false_claims.add((pane.name, state.awaits.value))
        await anyio.sleep(LOOK_S)  # between looks, none of which may find that something is awaited

    assert not false_claims


@pytest.fixture
def gpg_home() -> Iterator[str]:
    """Yield a home of gpg; its agent, which has a socket there, ends with the pane."""
    if shutil.which("gpg") is None:
        pytest.skip("there is no gpg")
    with tempfile.TemporaryDirectory(prefix="gpg-") as home:  # a short path, for the socket
        yield home


@pytest.mark.parametrize("pinentry", ["pinentry-tty", "pinentry-curses"])
async def test_passphrase_that_a_pinentry_asks_for_is_awaited_by_gpg(
    tools: Tools, tmp_path: Path, gpg_home: str, pinentry: str
) -> None:
    path = shutil.which(pinentry)
    if path is None:
        pytest.skip(f"there is no {pinentry}")
    Path(gpg_home, "gpg-agent.conf").write_text(f"pinentry-program {path}\n")
    pane_id = await tools.create("bash --norc", cwd=str(tmp_path), env={"GNUPGHOME": gpg_home})

    command = "export GPG_TTY=$(tty); echo text | gpg -c -o encrypted"
    _, asked, _ = await run(tools, command, pane_id, timeout_s=PATIENCE_S)
    await tools.send(pane_id, ["correct horse 7 Enter", "correct horse 7 Enter"])
    await until(partial(tools.state, pane_id), lambda state: state["foreground"] == "bash")

    assert (asked["reason"], asked["awaits"]) == ("input", "hidden input")
    assert (tmp_path / "encrypted").exists()


async def test_pinentry_that_reads_key_by_key_asks_for_a_secret(
    settings: Settings, tmp_path: Path
) -> None:
    shutil.copy(shutil.which("cat") or "", tmp_path / "pinentry-curses")
    async with in_process(replace(settings, only_people_type_secrets=True)) as tools:
        pane_id = await tools.create(f"stty -icanon -echo; exec {tmp_path}/pinentry-curses")
        state = partial(tools.state, pane_id)
        await until(state, lambda state: state.get("awaits") == "hidden input")

        error = await tools.error("send_keys", pane_id=pane_id, keys="hunter2 Enter")

    assert "which only a person may type here" in error


async def test_reader_that_is_nobodys_child_is_told(tools: Tools) -> None:
    await tools.create("exec sleep 1000")
    [pane] = tools.engine.panes
    terminal = os.readlink(f"/proc/{pane.leader.pid}/fd/0")
    command = ["setsid", "cat", terminal]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as reader:  # noqa: ASYNC220
        try:
            state = await until(pane.state, lambda state: state.awaits is not None)
        finally:
            reader.kill()
    assert (state.foreground, state.awaits) == ("sleep", Awaits.INPUT)
    await until(pane.state, lambda state: state.awaits is None)
