"""Keys as steps: each goes out when the program awaits it."""

import re
import shlex
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio
import pytest
from clocks import SkippingClock, with_times
from support import PATIENCE_S, SHELLS, Gate, Tools, eventually, python, until

from tmux_debug_mcp.clock import Times
from tmux_debug_mcp.errors import SecretNotAwaitedError
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.sending import send
from tmux_debug_mcp.vt.steps import steps

CALC = python("""
stack = []
print("rpn")
while True:
    word = input("> ")
    if word == "p": print("=", stack[-1])
    elif word == "+": stack.append(stack.pop() + stack.pop())
    else: stack.append(int(word))
""")


@pytest.mark.parametrize("shell", SHELLS)
async def test_program_that_a_line_starts_gets_the_lines_behind_it(
    tools: Tools, shell: str
) -> None:
    pane_id = await tools.create(SHELLS[shell], timeout_s=PATIENCE_S)
    confirmation, text, status = await tools.blocks(
        "send_keys", pane_id=pane_id, keys="cat -n\none\ntwo\nthree\n"
    )

    assert confirmation == f"Sent keys to pane '{pane_id}'"
    assert "     3\tthree\n" in text
    assert "awaits input" in status


INSTALLER = """
stty -echo; read -rp 'password: ' password; stty echo; echo
read -rp '1) here 2) there: ' place
printf '[..........]'; cat "$1"; printf '\\r[##########]\\n'
read -rp 'path: ' path; echo "done <$password> <$place> <$path>"; cat
"""


async def test_lone_key_is_for_the_question_behind_a_progress_bar(tools: Tools, gate: Gate) -> None:
    await tools.create(f"bash -c {shlex.quote(INSTALLER)} - {gate}", wait_for="password: $")
    answers: list[list[str]] = []

    async def send() -> None:
        keys = ["swordfish Enter", "2 Enter", "Enter"]
        answers.append(await tools.send("debug-1", keys, wait_for="^done"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send)
        await tools.shows("debug-1", "[..........]")
        # Past the moment that a full-screen program would get.
        await anyio.sleep(2 * Times().quiet_s)
        assert answers == []
        await gate.open()

    [[confirmation, text, status]] = answers
    assert confirmation == "Sent keys to pane 'debug-1'"
    assert "path: \ndone <swordfish> <2> <>" in text
    assert "; matched; " in status


async def test_key_for_a_program_that_never_reads_is_not_sent(tools: Tools) -> None:
    await tools.create("exec sleep 1001")
    await tools.shows_foreground("debug-1", "sleep")
    for step, timeout_s in (("Enter", 0.3), ("q", 0.3), ("Down", 0.3), ("C-d", 3.0)):
        keys = ["SIGCONT", step]
        confirmation, *_ = await tools.blocks(
            "send_keys", pane_id="debug-1", keys=keys, timeout_s=timeout_s
        )

        assert confirmation.startswith(
            f"Sent 1 of 2 steps to pane 'debug-1'. Step 2 was not sent: after {timeout_s:g} s, "
            "sleep is not reading input"
        ), step
    # Only what is at rest by then is told to be blocked.
    assert confirmation.endswith("input; sleeps.")


# Each prints the keys that it gets, and works on meanwhile.
POLLERS = {
    "waits a while for a key": "screen.timeout(20)",
    "never waits": "screen.nodelay(True)",
}


@pytest.mark.parametrize("mode", POLLERS.values(), ids=POLLERS)
async def test_keys_reach_a_game_that_draws_on(tools: Tools, mode: str) -> None:
    program = (
        "import curses, itertools, time\n"
        f"def play(screen):\n got = ''\n {mode}\n"
        " for frame in itertools.count():\n"
        "  key = screen.getch()\n"
        "  if key > 0: got += chr(key)\n"
        "  screen.addstr(0, 0, f'{frame} got {got}!'); screen.refresh(); time.sleep(0.02)\n"
        "curses.wrapper(play)"
    )
    await tools.create(python(program), wait_for="got")
    confirmation, *_ = await tools.blocks(
        "send_keys", pane_id="debug-1", keys=["a", "b", "c"], timeout_s=PATIENCE_S, wait_for="abc"
    )

    assert confirmation.startswith("Sent keys")
    await tools.shows("debug-1", "got abc!")


@pytest.mark.parametrize("step", ["C-c", "C-\\", "SIGUSR1"])
async def test_interrupt_reaches_a_shell_that_reads_its_settings(
    tools: Tools, tmp_path: Path, step: str
) -> None:
    settings = tmp_path / "settings"
    settings.write_text(
        "trap 'interrupted=yes' INT QUIT USR1; echo reading\n"
        "while [ -z $interrupted ]; do :; done; echo interrupted; cat\n"
    )
    await tools.create(f"bash --rcfile {settings}", wait_for="reading")
    texts: list[str] = []

    async def type_text() -> None:
        texts.append((await tools.send("debug-1", "text for cat Enter", timeout_s=PATIENCE_S))[0])

    async with anyio.create_task_group() as tasks:
        # Text waits for the shell, and must not hold up what interrupts it.
        tasks.start_soon(type_text)
        await until(waiters(tools), lambda count: count == 1)
        await tools.send("debug-1", step)
        assert texts == []
        await tools.shows("debug-1", "interrupted\n")


@with_times(starting_s=600.0, asking_s=600.0)
async def test_call_that_waits_for_nothing_types_ahead_of_a_shell_that_reads_its_settings(
    tools: Tools, gate: Gate, tmp_path: Path
) -> None:
    settings = tmp_path / "settings"
    settings.write_text(f"echo reading; line=$(cat {gate})\nPS1='> '\n")
    await tools.create(f"bash --rcfile {settings}", wait_for="reading")

    answer = await tools.blocks("send_keys", pane_id="debug-1", keys="echo $((6*7))\n", timeout_s=0)

    assert [answer[0], len(answer)] == ["Sent keys to pane 'debug-1'", 2]
    await gate.open()
    _, *answer = await tools.blocks("wait", pane_id="debug-1", pattern="^42$")
    assert "; matched; " in answer[-1]


@with_times(starting_s=600.0, asking_s=600.0)
@pytest.mark.parametrize("keys", [["yes Enter"], ["SIGCONT", "yes Enter"]], ids=["first", "next"])
async def test_step_waits_once_and_no_longer_than_its_timeout_for_a_shell_that_asks_at_its_start(
    tools: Tools, tmp_path: Path, keys: list[str]
) -> None:
    settings = tmp_path / "settings"
    settings.write_text("read -p 'sure? ' answer; echo \"got $answer\"; PS1='> '\n")
    await tools.create(f"bash --rcfile {settings}", wait_for="sure. $")

    answer = await tools.blocks("send_keys", pane_id="debug-1", keys=keys, timeout_s=2)

    assert answer[0] == "Sent keys to pane 'debug-1'"
    assert "got yes\n" in answer[1]


def waiters(tools: Tools) -> Callable[[], Awaitable[int]]:
    """Return what counts the calls that have the right to type steps in the only pane."""
    [pane] = tools.engine.panes

    async def count() -> int:
        return int(pane.keyboard.sequence.statistics().locked)

    return count


async def test_text_right_after_an_interrupt_arrives_whole(tools: Tools) -> None:
    await tools.create("bash --norc", timeout_s=PATIENCE_S)
    for number in range(15):
        await tools.send("debug-1", "C-c")
        await tools.send("debug-1", f"echo arrived-$(({number})) Enter")
        await tools.shows("debug-1", f"\narrived-{number}\n")


async def test_prompts_are_waited_for_one_by_one(tools: Tools) -> None:
    await tools.create(CALC, wait_for="> $")
    _, text, status = await tools.blocks("send_keys", pane_id="debug-1", keys="1\n2\n+\np\n")

    assert text == "1\n> 2\n> +\n> p\n= 3\n> "
    assert "awaits input" in status


async def test_array_mixes_text_keys_and_signals(tools: Tools) -> None:
    program = (
        "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: print('usr1'))\n"
        "print('ready')\nwhile True:\n"
    )
    program += " try: print('got', input())\n except KeyboardInterrupt: print('int')\n"
    await tools.create(python(program), wait_for="ready")
    confirmation, text, _ = await tools.blocks(
        "send_keys", pane_id="debug-1", keys=["a Enter", "SIGUSR1", "C-c", "b\n"]
    )

    assert confirmation == "Sent keys to pane 'debug-1'"
    assert [
        line for line in text.split("\n") if line.startswith(("got", "usr1", "int", "^Cint"))
    ] == [
        "got a",
        "usr1",
        "^Cint",
        "got b",
    ]


async def test_step_that_is_not_reached_is_told_with_what_came_of_the_others(tools: Tools) -> None:
    await tools.create("bash --norc", timeout_s=PATIENCE_S)
    confirmation, text, status = await tools.blocks(
        "send_keys",
        pane_id="debug-1",
        keys="echo one; sleep 60\necho two\necho three\n",
        timeout_s=0.5,
    )

    assert confirmation == (
        "Sent 1 of 3 steps to pane 'debug-1'. Step 2 was not sent: after 0.5 s, sleep is not "
        "reading input; sleeps."
    )
    assert "one\n" in text
    assert "echo two" not in text
    assert "foreground sleep" in status


async def test_end_of_the_program_stops_the_steps(tools: Tools) -> None:
    await tools.create("head -n 1; exit 3", timeout_s=PATIENCE_S)
    confirmation, _, status = await tools.blocks("send_keys", pane_id="debug-1", keys="one\ntwo\n")

    assert "Step 2 was not sent: the program exited with code 3 after " in confirmation
    assert "exited with code 3" in status


async def test_signal_that_ends_the_program_stops_the_steps(tools: Tools) -> None:
    await tools.create("cat", timeout_s=PATIENCE_S)
    confirmation, *_ = await tools.blocks("send_keys", pane_id="debug-1", keys=["C-c", "x"])

    assert "Step 2 was not sent: the program exited with code 130 (SIGINT) after " in confirmation


async def test_key_is_not_held_up_by_a_program_that_prints_on(tools: Tools) -> None:
    await tools.create("bash --norc", timeout_s=PATIENCE_S)
    keys = ["yes tick Enter", "C-c"]
    _, text, status = await tools.blocks(
        "send_keys", pane_id="debug-1", keys=keys, timeout_s=PATIENCE_S
    )

    assert "tick\n" in text
    assert "foreground bash" in status
    assert "awaits keys" in status


async def test_wait_for_looks_from_the_last_step_on(tools: Tools) -> None:
    await tools.create(CALC, wait_for="> $")
    _, text, status = await tools.blocks(
        "send_keys", pane_id="debug-1", keys="1\np\n2\np\n", wait_for="^= "
    )

    assert text.removesuffix("> ").endswith("= 2\n")
    assert "= 1\n" in text
    assert "matched" in status


async def test_paste_goes_in_one_piece(tools: Tools, gate: Gate) -> None:
    await tools.create(f"cat {gate}; cat -A", timeout_s=0)
    confirmation, *_ = await tools.blocks(
        "send_keys", pane_id="debug-1", keys="one\ntwo\n", paste=True, timeout_s=0
    )
    assert confirmation == "Sent keys to pane 'debug-1'"
    await gate.open()
    await tools.shows("debug-1", "one$\ntwo$")


@pytest.mark.parametrize(
    ("command", "programs"),
    [
        ("exec sleep 60", {"sleep"}),
        ("sleep 60; exit 9", {"sleep"}),
        ("sleep 60 | cat", {"sleep", "cat"}),
    ],
)
async def test_signal_goes_to_the_program_in_the_foreground(
    tools: Tools, command: str, programs: set[str]
) -> None:
    def runs(pane: Pane) -> bool:
        stats = map(processes.read_stat, processes.descendants(pane.leader.pid))
        return programs <= {stat.comm for stat in stats if stat}

    for name in ("SIGUSR1", "SIGTERM", "SIGKILL", "SIGHUP", "SIGSEGV"):
        pane = await tools.engine.find(await tools.create(command))
        await eventually(partial(runs, pane))
        confirmation, *_, status = await tools.blocks(
            "send_keys", pane_id=pane.id, keys=name, timeout_s=PATIENCE_S
        )

        assert confirmation == f"Sent keys to pane '{pane.id}'"
        assert re.search(f"killed by {name} |with code [0-9]+ .{name}. ", status)


async def test_signal_in_a_shell_leaves_the_shell(tools: Tools) -> None:
    await tools.create("bash --norc", timeout_s=PATIENCE_S)
    await tools.send("debug-1", "sleep 60 Enter")
    await tools.shows_foreground("debug-1", "sleep")
    *_, status = await tools.blocks(
        "send_keys", pane_id="debug-1", keys="SIGTERM", timeout_s=PATIENCE_S
    )
    assert "foreground bash" in status

    error = await tools.error("send_keys", pane_id="debug-1", keys="SIGTERM")
    assert error == (
        "SIGTERM was not sent: bash is at its prompt there, and no program runs. "
        "Set literal to type it as text."
    )
    assert (await tools.state("debug-1"))["status"] == "running"
    assert signal.Signals[error.split(" ", 1)[0]] == signal.SIGTERM


async def test_steps_of_two_calls_do_not_mix_and_interrupts_pass(tools: Tools, gate: Gate) -> None:
    await tools.create("bash --norc", timeout_s=PATIENCE_S)
    answers = []

    async def send(*keys: str) -> None:
        answers.append(await tools.blocks("send_keys", pane_id="debug-1", keys=list(keys)))

    async with anyio.create_task_group() as tasks:
        reads = f"read -r secret; cat {gate} Enter"
        tasks.start_soon(send, reads, "MYPASSWORD Enter", "echo first $secret Enter")
        await tools.shows_foreground("debug-1", "cat")
        tasks.start_soon(send, "echo second Enter")
        await tools.send("debug-1", "SIGCONT")
        assert answers == []
        await gate.open()

    screen = await tools.shows("debug-1", "\nsecond\n")
    assert "first MYPASSWORD\n" in screen
    assert "MYPASSWORD: command not found" not in screen
    assert screen.index("\nfirst") < screen.index("\nsecond")


async def test_program_that_prints_on_gets_all_its_lines(tools: Tools) -> None:
    program = (
        "import threading, time\n"
        "def talk():\n while True: print('got', input(), flush=True)\n"
        "threading.Thread(target=talk).start()\n"
        "while True: print('log', flush=True); time.sleep(0.05)"
    )
    await tools.create(python(program), wait_for="log")
    confirmation, *_, status = await tools.blocks(
        "send_keys", pane_id="debug-1", keys=["a Enter", "b Enter"], wait_for="got b"
    )
    assert confirmation.startswith("Sent keys")
    assert "; matched; " in status


async def test_step_that_can_not_be_sent_is_told_with_those_that_were(tools: Tools) -> None:
    await tools.create("bash --norc", timeout_s=PATIENCE_S)
    confirmation, text, _ = await tools.blocks(
        "send_keys", pane_id="debug-1", keys=["echo one Enter", "SIGTERM"]
    )

    assert confirmation.startswith(
        "Sent 1 of 2 steps to pane 'debug-1'. "
        "Step 2 was not sent: SIGTERM was not sent: bash is at its prompt there"
    )
    assert "one\n" in text


async def test_steps_without_time_to_wait_stop_at_the_first_that_is_not_awaited(
    tools: Tools,
) -> None:
    pane_id = await tools.create("exec sleep 1001")

    confirmation, *_ = await tools.blocks(
        "send_keys", pane_id=pane_id, keys=["one Enter", "two Enter"], timeout_s=0
    )
    assert confirmation.startswith("Sent 1 of 2 steps")


@pytest.mark.parametrize("clock", [SkippingClock()], ids=["skipping"])
async def test_time_of_the_first_step_begins_with_its_call(
    tools: Tools, clock: SkippingClock
) -> None:
    await tools.create("sleep 1000")
    [pane] = tools.engine.panes
    told: list[str] = []

    async def send_secret() -> None:
        with pytest.raises(SecretNotAwaitedError) as error:
            await send(pane, steps("hunter2\n"), 30, is_secret=True)
        told.append(str(error.value))

    async with anyio.create_task_group() as tasks:
        async with pane.keyboard.in_sequence(1):
            tasks.start_soon(send_secret)
            await eventually(lambda: pane.keyboard.sequence.statistics().tasks_waiting > 0)
            clock.skip(20)
        await eventually(lambda: pane.subscribers > 0)
        clock.skip(10)

    [found] = re.findall(r"after ([\d.]+) s, sleep is not reading input", told[0])
    assert float(found) <= 10
