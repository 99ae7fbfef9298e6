"""Text and keys arrive in a real terminal as they were sent."""

import os
import signal
from functools import partial
from pathlib import Path

import anyio
import pytest
from support import PATIENCE_S, SHELLS, Gate, Tools, eventually, python, until

from tmux_debug_mcp.errors import PaneLostError, StorageError, ToolError
from tmux_debug_mcp.panes import people
from tmux_debug_mcp.panes.hidden_input import Readers, check_hidden_input
from tmux_debug_mcp.panes.keyboard import Keyboard
from tmux_debug_mcp.panes.looking.activity import Awaits
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.people import type_secret
from tmux_debug_mcp.tmux.client import ControlClient
from tmux_debug_mcp.vt.steps import INTERRUPT, Keystrokes

# What has been mangled on its way through tmux, a shell, a lexer or a terminal.
TRICKY = [
    "echo hi;",
    ";",
    "-l",
    "--",
    "-x;",
    "#{pane_id}",
    "#(touch {directory}/pwned)",
    "$(touch {directory}/pwned) `touch {directory}/pwned`",
    "$HOME ~ ~root",
    "\"double\" 'single' \\back\\slash\\",
    "{ } %if %end %begin 1 2 1",
    "a ; kill-server",
    "日本語 éß 👩‍👩‍👧 \u202e right to left \u0301",
    "\ufeff\u00a0\u2028\uffff\U0010ffff",
    "trailing blanks   ",
    "   leading blanks",
    "\t\ttabs\t",
    "^C^D^Z and ^",
    "Enter your name, then go Home",
    "%0 @0 $0 = ! { } + -",
    "\x01\x02\x1b[31m\x7f",
    "'; touch {directory}/pwned; '",
]

NAMED = {
    "Enter": b"\r",
    "Escape": b"\x1b",
    "Tab": b"\t",
    "BTab": b"\x1b[Z",
    "Space": b" ",
    "BSpace": b"\x7f",
    "Up Down Right Left": b"\x1b[A\x1b[B\x1b[C\x1b[D",
    "Home End": b"\x1b[H\x1b[F",
    "Insert Delete": b"\x1b[2~\x1b[3~",
    "PageUp PageDown": b"\x1b[5~\x1b[6~",
    "F1 F4 F5 F12": b"\x1bOP\x1bOS\x1b[15~\x1b[24~",
    "^C": b"\x03",
    "C-a C-z": b"\x01\x1a",
    "C-Space ^[ ^\\ ^] ^^ ^_": b"\x00\x1b\x1c\x1d\x1e\x1f",
    "M-x M-X M-; M-é": b"\x1bx\x1bX\x1b;\x1b\xc3\xa9",
    "C-M-x": b"\x1b\x18",
    "S-Up C-Left": b"\x1b[1;2A\x1b[1;5D",
    "M-Enter": b"\x1b\r",
}


class Typist:
    """A pane whose program writes the bytes that it is typed into a file."""

    def __init__(self, tools: Tools, pane_id: str, file: Path) -> None:
        self.tools, self.pane_id, self.file = tools, pane_id, file

    async def gets(self, expected: bytes, keys: str, **arguments: bool) -> list[str]:
        """Send keys; return the answer when just these bytes have arrived."""
        before = self.file.stat().st_size
        answer = await self.tools.send(self.pane_id, keys, **arguments)
        await eventually(lambda: self.file.stat().st_size >= before + len(expected))
        assert self.file.read_bytes()[before:] == expected
        return answer


@pytest.fixture
async def typist(tools: Tools, tmp_path: Path) -> Typist:
    file = tmp_path / "typed"
    file.touch()
    pane_id = await tools.create(f"stty raw -echo && echo ready && exec cat >{file}")
    await tools.shows(pane_id, "ready")
    return Typist(tools, pane_id, file)


async def test_the_trickiest_texts_arrive_byte_for_byte(typist: Typist, tmp_path: Path) -> None:
    for text in (text.replace("{directory}", str(tmp_path)) for text in TRICKY):
        await typist.gets(text.encode(), text)
        long = "." * 1000 + text  # which goes to tmux in another way
        await typist.gets(long.encode(), long)

    assert not (tmp_path / "pwned").exists()


async def test_tmux_keeps_nothing_of_what_was_typed(typist: Typist) -> None:
    await typist.gets(b"hunter2\r", "hunter2 Enter")

    [pane] = typist.tools.engine.panes
    messages, buffers = await pane.tmux(("show-messages",), ("list-buffers",))
    assert (messages, buffers) == ((), ())


async def test_every_named_key_sends_what_a_keyboard_sends(typist: Typist) -> None:
    for keys, expected in NAMED.items():
        await typist.gets(expected, keys)


async def test_text_then_enter_is_one_answer_that_says_so(typist: Typist) -> None:
    answer = await typist.gets(b"ls -la\r", "ls -la Enter")

    assert answer[0] == "Sent keys to pane 'debug-1'"
    assert answer[1].startswith("[debug-1 running ")


@pytest.mark.parametrize("size", [100_000, (1 << 20) - 1])
async def test_large_texts_arrive_whole(typist: Typist, size: int) -> None:
    text = ("0123456789abcdef;é" * (size // 19 + 1)).encode()[:size].decode(errors="ignore")

    await typist.gets(text.encode() + b"\r", text + "\n")


async def test_line_feeds_inside_are_enter_where_no_paste_is_asked_for(typist: Typist) -> None:
    await typist.gets(b"a\r\tb\r", "a\n\tb\n")


async def test_paste_is_bracketed_where_the_program_asks_for_it(
    tools: Tools, tmp_path: Path
) -> None:
    file = tmp_path / "typed"
    file.touch()
    pane_id = await tools.create(
        f"stty raw -echo && printf 'ready\\033[?2004h' && exec cat >{file}"
    )
    await tools.shows(pane_id, "ready")

    await Typist(tools, pane_id, file).gets(b"\x1b[200~a\rb\r\x1b[201~", "a\nb\n", paste=True)


async def test_literal_types_key_names_and_makes_line_feeds_enter(typist: Typist) -> None:
    await typist.gets(b"C-c\rEnter", "C-c\nEnter", literal=True)


async def test_thousands_of_keys_are_pressed_in_order(typist: Typist) -> None:
    await typist.gets(b"\x1b[A\x1b[B" * 6000, "Up Down " * 6000)


async def test_keys_of_concurrent_calls_do_not_mix(typist: Typist) -> None:
    texts = [chr(ord("a") + number) * 3000 for number in range(20)]
    send = partial(typist.tools.send, typist.pane_id, timeout_s=PATIENCE_S)
    async with anyio.create_task_group() as tasks:
        for text in texts:
            tasks.start_soon(send, text + "\n")

    await eventually(lambda: typist.file.stat().st_size >= 20 * 3001)
    assert sorted(typist.file.read_bytes().decode().split("\r")[:-1]) == texts


async def test_keys_reach_the_program_while_a_person_scrolls(typist: Typist) -> None:
    pane = typist.tools.engine.panes[0]
    await pane.client.run(("copy-mode", "-t", pane.target))

    await typist.gets(b"xy", "xy")


async def test_keys_to_an_exited_pane_are_an_error_that_says_how_it_ended(tools: Tools) -> None:
    pane_id = await tools.create("exit 3", timeout_s=PATIENCE_S)

    error = await tools.error("send_keys", pane_id=pane_id, keys="ls Enter")

    assert error.startswith("Pane 'debug-1' exited with code 3 after ")
    assert "Use tmux_capture_pane" in error


async def test_secret_keys_are_not_in_the_error_text(tools: Tools) -> None:
    pane_id = await tools.create("cat")

    error = await tools.error("send_keys", pane_id=pane_id, keys="Escape hunter2", secret=True)

    assert "hunter2" not in error
    assert "Set literal" in error


async def asking(tools: Tools) -> Pane:
    """Return a pane whose program awaits hidden input, and prints how long that was."""
    pane_id = await tools.create("stty -echo; echo ask; read x; echo got ${#x}; cat")
    await until(partial(tools.state, pane_id), lambda state: state.get("awaits") == "hidden input")
    [pane] = tools.engine.panes
    return pane


async def test_secret_that_the_terminal_shows_is_told(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane = await asking(tools)
    really_type = Keyboard.type

    async def after_echo_was_turned_on(keyboard: Keyboard, keystrokes: Keystrokes) -> None:
        stty = ["stty", "-F", f"/proc/{pane.leader.pid}/fd/0", "echo"]
        await anyio.run_process(stty)
        await really_type(keyboard, keystrokes)

    monkeypatch.setattr(Keyboard, "type", after_echo_was_turned_on)
    with pytest.raises(
        ToolError, match=r"typed, and pane 'debug-1' showed it.* so change the secret"
    ):
        await type_secret(pane, "hunter2", await check_hidden_input(pane))

    await tools.shows("debug-1", "got 7")


async def test_interrupt_goes_out_while_it_is_looked_who_awaits_a_secret(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane = await asking(tools)
    readers = await check_hidden_input(pane)

    async def interrupt_and_check(pane: Pane) -> Readers:
        await pane.keyboard.press(INTERRUPT)
        return await check_hidden_input(pane)

    monkeypatch.setattr(people, "check_hidden_input", interrupt_and_check)
    with pytest.raises(ToolError), anyio.fail_after(PATIENCE_S):
        await type_secret(pane, "hunter2", readers)


async def test_hidden_input_is_awaited_though_output_is_late_in_the_log(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane = await asking(tools)
    flush = pane.terminal._flush

    def print_late() -> None:
        with Path(pane.log.writable).open("ab") as log:
            log.write(b"late")

    async def print_more() -> None:
        monkeypatch.setattr(pane.terminal, "_flush", flush)
        print_late()

    print_late()
    monkeypatch.setattr(pane.terminal, "_flush", print_more)
    await type_secret(pane, "hunter2", await check_hidden_input(pane))

    await tools.shows("debug-1", "got 7")


# Asks for a secret, and prints how long that was.
ASK = "stty -echo; echo ask; read x; stty echo; echo got ${#x}"


async def test_secret_waits_until_hidden_input_is_awaited(tools: Tools, gate: Gate) -> None:
    pane_id = await tools.create(f"cat {gate}; {ASK}; cat")
    [pane] = tools.engine.panes
    answers: list[list[str]] = []

    async def send() -> None:
        answers.append(await tools.send(pane_id, "hunter2 Enter", secret=True, wait_for="got"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send)
        await eventually(lambda: pane.keyboard.sequence.locked() or bool(answers))
        await gate.open()

    assert "hunter2" not in await tools.shows(pane_id, "got 7")
    assert answers[0][0] == "Sent keys to pane 'debug-1'"
    assert "showed" not in answers[0][-1]


@pytest.mark.parametrize("shell", SHELLS)
async def test_secret_is_not_typed_at_a_prompt(tools: Tools, shell: str) -> None:
    """As after `sudo` that needs no password, or got a wrong one."""
    pane_id = await tools.create(SHELLS[shell])
    call = partial(tools.error, "send_keys", pane_id=pane_id, secret=True)

    error = await call(keys=["touch hunter2 Enter", "ls Enter"])

    assert error == (
        f"Pane 'debug-1' does not await hidden input: {shell} is at its prompt. Nothing was typed, "
        "since a secret could be shown or run as a command there. To type it anyway, omit "
        "parameter 'secret'; it is then on record."
    )
    assert "hunter2" not in await tools.capture(pane_id)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("exec cat", "cat awaits input"),
        ("exec sleep 1000", "after 1.5 s, sleep is not reading input"),
        (python("import tty; tty.setraw(0); print('keys'); input()"), "awaits keys"),
        (
            python(
                "import os, select, tty; tty.setraw(0); select.select([0, os.pipe()[0]], [], [])"
            ),
            "after 1.5 s, python awaits keys",
        ),
    ],
)
async def test_secret_is_not_typed_where_no_hidden_input_is_awaited(
    tools: Tools, command: str, why: str
) -> None:
    pane_id = await tools.create(command)

    error = await tools.error(
        "send_keys", pane_id=pane_id, keys="hunter2 Enter", secret=True, timeout_s=1.5
    )

    assert error.startswith("Pane 'debug-1' does not await hidden input: ")
    assert why in error
    assert "hunter2" not in await tools.capture(pane_id)


async def test_secret_of_a_further_step_waits_for_hidden_input_too(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc")
    await tools.send(pane_id, f"{ASK} Enter", wait_for="ask")

    blocks = await tools.send(pane_id, ["hunter2 Enter", "touch hunter2 Enter"], secret=True)

    assert blocks[0] == (
        "Sent 1 of 2 steps to pane 'debug-1'. Step 2 was not sent: bash is at its prompt."
    )
    assert "hunter2" not in await tools.capture(pane_id)


async def test_secret_that_a_call_types_and_the_terminal_shows_is_told(tools: Tools) -> None:
    colours = "stty -echo; read x; printf '\\033[31m%s\\033[32m%s\\n' ${x%2} 2; cat"
    pane_id = await tools.create(colours)

    blocks = await tools.send(pane_id, "hunter2 Enter", secret=True, wait_for="hunter2")

    assert "the terminal showed the secret, and the log has it" in blocks[-1]


async def test_secret_goes_to_no_other_program_than_the_one_that_awaited_it(tools: Tools) -> None:
    pane_id = await tools.create(f"stty -echo; head -n 1; {python('input()')}")
    await until(partial(tools.state, pane_id), lambda state: state.get("awaits") == "hidden input")
    [pane] = tools.engine.panes
    errors: list[str] = []

    async def send() -> None:
        keys = {"keys": "hunter2 Enter", "secret": True}
        errors.append(await tools.error("send_keys", pane_id=pane_id, **keys))

    async with anyio.create_task_group() as tasks, pane.keyboard.lock:
        tasks.start_soon(send)
        await eventually(lambda: bool(pane.keyboard.lock.statistics().tasks_waiting))
        await pane.tmux(("send-keys", "-t", pane.target, "x", "Enter"))
        await until(
            pane.state,
            lambda state: state.foreground != "head" and state.awaits is Awaits.HIDDEN_INPUT,
        )

    assert errors[0].startswith("Pane 'debug-1': another program awaits hidden input now, python")


async def test_control_c_interrupts_the_program(tools: Tools) -> None:
    pane_id = await tools.create(python("import time; print('ready'); time.sleep(60)"))
    await tools.shows(pane_id, "ready")

    await tools.send(pane_id, "C-c")

    assert (await tools.exited(pane_id))["signal"] == "SIGINT"
    assert "KeyboardInterrupt" in await tools.capture(pane_id)


async def test_program_has_its_time_to_read_from_when_tmux_has_typed(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tools.create("cat")
    [pane] = tools.engine.panes
    really_paste = Keyboard._paste
    now = pane.clock.now

    async def an_hour_later(keyboard: Keyboard, text: str, *, is_bracketed: bool) -> None:
        await really_paste(keyboard, text, is_bracketed=is_bracketed)
        monkeypatch.setattr(pane.clock, "now", lambda: now() + 3600.0)

    monkeypatch.setattr(Keyboard, "_paste", an_hour_later)
    await tools.send(pane.id, "hello Enter")

    assert pane.terminal.typed_s < 3600.0


async def test_pane_that_dies_while_it_is_typed_to_ends_no_other(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, pane_id = await tools.create("cat"), await tools.create("cat")
    pane = tools.engine.panes[1]
    os.kill(pane.leader.pid, signal.SIGKILL)
    dead = ("display-message", "-p", "-t", pane.target, "#{pane_dead}")
    await until(lambda: pane.tmux(dead), lambda answer: answer == [(b"1",)])

    async def before_it_died(_pane: Pane) -> None:
        pass

    monkeypatch.setattr(Pane, "check_running", before_it_died)
    await tools.call("send_keys", pane_id=pane_id, keys="hello")
    await tools.send(other, "still here Enter")
    await tools.shows(other, "still here\nstill here")
    assert await pane.tmux(("list-buffers",)) == [()]


@pytest.mark.parametrize("is_paste", [False, True])
async def test_keys_for_a_pane_that_has_just_gone_are_an_error_and_leave_no_buffer(
    tools: Tools, *, is_paste: bool
) -> None:
    other, _ = await tools.create("cat"), await tools.create("cat")
    neighbour, pane = tools.engine.panes
    await pane.client.run(("kill-pane", "-t", pane.target))

    with pytest.raises(PaneLostError):
        await pane.keyboard.press(Keystrokes("hello", is_paste=is_paste, keys=("Enter",)))

    assert await neighbour.tmux(("list-buffers",)) == [()]
    await tools.send(other, "for the other Enter")
    assert "hello" not in await tools.shows(other, "for the other\nfor the other")


ASKED = {"\\033[>4;2m": b"\x1b[27;2;13~\x1b[27;5;9~", "\\033[>1u": b"\x1b[13;2u\x1b[9;5u"}


@pytest.mark.parametrize(("request_", "expected"), ASKED.items(), ids=["xterm", "kitty"])
async def test_shifted_enter_is_sent_where_the_program_asked_for_such_keys(
    tools: Tools, tmp_path: Path, request_: str, expected: bytes
) -> None:
    file = tmp_path / "typed"
    file.touch()
    ask = f"printf '{request_}'"
    pane_id = await tools.create(f"stty raw -echo && {ask} && echo ready && exec cat >{file}")
    await tools.shows(pane_id, "ready")

    await Typist(tools, pane_id, file).gets(expected, "S-Enter C-Tab")


async def test_shifted_enter_is_refused_where_it_would_submit(typist: Typist) -> None:
    tools, pane_id = typist.tools, typist.pane_id
    error = await tools.error("send_keys", pane_id=pane_id, keys="S-Enter")
    assert error.startswith(
        "'S-Enter' would reach the program as 'Enter': the program is not known"
    )
    confirmation, *_ = await tools.blocks("send_keys", pane_id=pane_id, keys=["text", "C-Enter"])
    assert confirmation.startswith(f"Sent 1 of 2 steps to pane '{pane_id}' (Enter not pressed).")
    assert "Step 2 was not sent: 'C-Enter' would reach the program as 'Enter'" in confirmation

    await eventually(lambda: typist.file.read_bytes() == b"text")
    await typist.gets(b"!", "!")


@pytest.mark.parametrize("command", ["bash --norc", "python3 -q"])
async def test_typed_tabs_at_a_line_editor_are_told_to_be_completions(
    tools: Tools, command: str
) -> None:
    await tools.create(command, timeout_s=PATIENCE_S)
    note = "(a line editor completes words at typed tabs; paste inserts them)"
    for keys, paste, said in [("x = '\t' Enter", False, note), ("\t\t'\n", True, None)]:
        answer = await tools.send("debug-1", keys, paste=paste)
        assert answer[0] == " ".join(filter(None, ["Sent keys to pane 'debug-1'", said]))
        await tools.send("debug-1", "C-c")


async def test_tabs_for_a_program_that_reads_lines_need_no_word(tools: Tools) -> None:
    await tools.create("cat")
    answer = await tools.send("debug-1", "a\tb Enter")
    assert answer[0] == "Sent keys to pane 'debug-1'"


@pytest.mark.parametrize("paste", [False, True])
async def test_line_that_is_longer_than_the_terminal_keeps_is_told(
    tools: Tools, *, paste: bool
) -> None:
    await tools.create("stty -echo; echo ready; wc -c", wait_for="ready")
    for size, said in [(4095, ""), (4096, " (the terminal keeps only 4095 bytes of a line)")]:
        answer = await tools.send("debug-1", "short\n" + "x" * size + "\n", paste=paste)
        assert answer[0] == f"Sent keys to pane 'debug-1'{said}"
    counted = await tools.send("debug-1", "C-d", wait_for=r"^\d")
    assert str(2 * (len("short\n") + 4095 + 1)) in counted[1]


async def test_output_that_is_stopped_is_told_until_it_goes_on(tools: Tools) -> None:
    await tools.create("echo ready; exec cat", wait_for="ready")
    stopped = "; C-s has stopped its output: C-q resumes it; "
    assert stopped not in (await tools.send("debug-1", "a Enter", timeout_s=1))[-1]
    await tools.send("debug-1", "C-s")
    assert stopped in (await tools.send("debug-1", "b Enter", timeout_s=1))[-1]
    assert stopped in (await tools.blocks("capture_pane", pane_id="debug-1"))[-1]
    assert stopped in (await tools.blocks("wait", pane_id="debug-1", timeout_s=0))[-1]
    answer = await tools.send("debug-1", "C-q", wait_for="^b$")
    assert "; matched; " in answer[-1]
    assert stopped not in answer[-1]


async def test_keys_that_could_not_be_sent_leave_the_shell_at_its_prompt(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane_id = await tools.create("bash --norc")
    await tools.blocks("run", command="echo before", pane_id=pane_id)
    [pane] = tools.engine.panes
    before = pane.keyboard.last_sent
    assert before

    def write(_client: ControlClient, name: str, _content: bytes) -> Path:
        raise StorageError(name, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(ControlClient, "write", write)
        error = await tools.error("send_keys", pane_id=pane_id, keys="x" * 100_000)

    assert "No space left on device" in error
    assert pane.keyboard.last_sent is before
    assert not pane.keyboard.is_line_used
    assert pane.terminal.before_typing is before.before
    assert (await tools.blocks("run", command="echo $?", pane_id=pane_id))[0] == "0\n"
