"""Text and the Enter after it in programs that take what arrives together for a paste."""

import os
import shlex
import shutil
import signal
import sys
from pathlib import Path

import anyio
import pytest
from clocks import TIMES, with_times
from support import PATIENCE_S, Tools, User, eventually, in_process, until
from toolsets import Terminal, Tmux

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.settings import Settings

BOX = f"{shlex.quote(sys.executable)} {shlex.quote(str(Path(__file__).with_name('text_box.py')))}"
# The control characters around a bracketed paste.
FRAME = len("\033[200~\033[201~")
KINDS = ["plain", "bracketed", "alone", "busy"]


async def submit(tools: Tools, keys: str, characters: int) -> None:
    """Type into the only pane until its text box submits a text of so many characters."""
    pattern = f"^submitted {characters}$"
    answer = await tools.send("debug-1", keys, wait_for=pattern, timeout_s=PATIENCE_S)
    assert "; matched; " in answer[-1]


@pytest.mark.parametrize("kind", KINDS)
async def test_text_is_submitted_in_a_text_box(tools: Tools, kind: str) -> None:
    await tools.create(f"{BOX} {kind}", wait_for="box ready")
    for text in ["y", "a longer text", "x" * 200]:
        await submit(tools, f"{text} Enter", len(text))


async def test_text_is_submitted_in_a_text_box_behind_a_relay(tools: Tools, tmp_path: Path) -> None:
    """What asks for keys such as Shift and Enter on the other side is no line editor."""
    relay = tmp_path / "ssh"  # a program of this name counts as one
    shutil.copy(Path(sys.executable).resolve(), relay)
    command = BOX.replace(shlex.quote(sys.executable), shlex.quote(str(relay)), 1)
    await tools.create(f"PYTHONHOME={sys.base_prefix} {command} kitty", wait_for="box ready")
    await submit(tools, "hello Enter", 5)


async def test_line_is_entered_behind_a_relay_that_was_at_work(tools: Tools) -> None:
    """What reads there isn't seen meanwhile, and is a line editor afterwards."""
    relay = shlex.quote(str(Path(__file__).parent.parent / "relay.py"))
    command = f"exec {shlex.quote(sys.executable)} {relay} 0 bash --norc"
    await tools.create(command, wait_for="^bash-")
    [pane] = tools.engine.panes
    pid = pane.terminal.look().snapshot.pid
    assert pid

    def is_stopped() -> bool:
        stat = processes.read_stat(pid)
        return stat is not None and stat.state == "T"

    async def go_on() -> None:
        await eventually(lambda: pane.keyboard.last_sent is not None)
        os.kill(pid, signal.SIGCONT)

    os.kill(pid, signal.SIGSTOP)
    await eventually(is_stopped)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(go_on)
        answer = await tools.send("debug-1", "echo $((6 * 7)) Enter", wait_for="^42$")
    assert "; matched; " in answer[-1], answer


async def test_each_line_is_submitted_alone_and_a_paste_as_a_whole(tools: Tools) -> None:
    await tools.create(f"{BOX} bracketed", wait_for="box ready")

    await submit(tools, "one\nthree\n", len("three"))
    await tools.send("debug-1", "one\nthree", paste=True)
    await submit(tools, "Enter", FRAME + len("one\rthree"))


@pytest.mark.parametrize(("kind", "is_bracketed"), [("bracketed", True), ("plain", False)])
async def test_long_text_is_pasted_where_the_program_asks_for_pastes(
    tools: Tools, kind: str, *, is_bracketed: bool
) -> None:
    await tools.create(f"{BOX} {kind}", wait_for="box ready")
    await submit(tools, f"{'0123456789' * 100} Enter", 1000 + FRAME * is_bracketed)


class WaitingClock(Clock):
    """A clock by which the pause after text ends when the test says so."""

    def __init__(self) -> None:
        super().__init__(TIMES)
        self.has_come, self.may_go_on = anyio.Event(), anyio.Event()

    async def sleep(self, duration_s: float) -> None:
        if duration_s == self.times.paste_s:
            self.has_come.set()
            await self.may_go_on.wait()
        else:
            await super().sleep(duration_s)


async def test_enter_is_not_pressed_once_something_else_was_typed(settings: Settings) -> None:
    clock, answers = WaitingClock(), []
    async with in_process(settings, clock=clock) as tools:
        await tools.create(f"{BOX} plain; cat", wait_for="box ready")

        async def send() -> None:
            answers.append(await tools.send("debug-1", "hello Enter"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            await clock.has_come.wait()
            await tools.send("debug-1", "C-c")
            await tools.shows_foreground("debug-1", "cat")
            clock.may_go_on.set()

        assert "its text was typed, but Enter was not pressed: something else" in answers[0][0]
        assert await tools.capture("debug-1") == "box ready"


async def test_enter_right_after_the_call_that_typed_the_text_submits_it(tools: Tools) -> None:
    await tools.create(f"{BOX} bracketed", wait_for="box ready")
    for _ in range(5):
        await tools.send("debug-1", "hello")
        await submit(tools, "Enter", 5)


async def test_text_is_submitted_by_a_call_that_waits_for_nothing(tools: Tools) -> None:
    await tools.create(f"{BOX} bracketed", wait_for="box ready")

    answer = await tools.blocks("send_keys", pane_id="debug-1", keys="hello Enter", timeout_s=0)

    assert answer[0] == "Sent keys to pane 'debug-1'"
    await tools.shows("debug-1", "submitted 5\n")


@with_times(traced_s=0.2)
async def test_enter_is_not_pressed_while_the_text_is_unread(tools: Tools) -> None:
    await tools.create("stty raw -echo; echo ready; exec sleep 1001", wait_for="ready")

    confirmation, *_ = await tools.blocks(
        "send_keys", pane_id="debug-1", keys=["hello Enter", "more Enter"], timeout_s=0.1
    )

    assert confirmation.startswith(
        "Sent 0 of 2 steps to pane 'debug-1'. Step 1 was not sent: its text was typed, but Enter "
        "was not pressed: after 0.2 s, sleep is not reading input"
    )


async def test_interrupt_comes_through_while_a_text_waits_to_be_read(tools: Tools) -> None:
    await tools.create("stty raw -echo; echo ready; exec sleep 1001", wait_for="ready")
    [pane] = tools.engine.panes
    confirmations: list[str] = []

    async def type_text() -> None:
        answer = await tools.send("debug-1", "hello Enter", timeout_s=PATIENCE_S)
        confirmations.append(answer[0])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(type_text)
        await eventually(lambda: pane.keyboard.last_sent is not None)
        await tools.send("debug-1", "SIGTERM")

    assert "its text was typed, but Enter was not pressed: the program" in confirmations[0]


async def test_text_is_submitted_in_a_pane_of_the_users_own_server(
    on_users: Tmux, user: User
) -> None:
    await on_users.text("create_session", name="c", command=f"exec {BOX} bracketed")

    def screen() -> str:
        return user.tmux("capture-pane", "-p", "-t", "=c:")

    await eventually(lambda: "box ready" in screen())
    answer = await on_users.text("send_keys", target="c", keys="hello\nlonger\n")
    assert answer == "Sent keys to pane 'c'"
    await eventually(lambda: "submitted 5\n'hello'\n\nsubmitted 6\n'longer'" in screen())


@with_times(traced_s=0.2)
async def test_enter_is_not_pressed_in_a_pane_of_the_users_where_nobody_reads(
    on_users: Tmux, user: User
) -> None:
    command = "stty raw -echo; echo ready; exec sleep 1001"
    await on_users.text("create_session", name="c", command=command)
    await eventually(lambda: "ready" in user.tmux("capture-pane", "-p", "-t", "=c:"))

    answer = await on_users.text("send_keys", target="c", keys="hello Enter")
    assert answer.startswith("Sent 0 of 1 steps to pane 'c'. Step 1 was not sent: its text was")


async def test_typed_line_is_submitted_in_the_toolset_terminal(term: Terminal) -> None:
    await term.text("type", text=f"exec {BOX} bracketed\n")
    await eventually_shows(term, "box ready")
    await term.text("type", text="hello\n")
    await eventually_shows(term, "submitted 5\n'hello'")


async def eventually_shows(term: Terminal, text: str) -> None:
    """Wait until the terminal contains a text."""

    async def content() -> str:
        return await term.text("getContent")

    await until(content, lambda shown: text in shown)
