"""Marks of ours in logs: what they tell, and what is shown in their place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmux_debug_mcp.panes.shells.dialects import ELSEWHERE, QUESTION, filled
from tmux_debug_mcp.vt.marks import (
    BEGIN,
    JOB_MARK,
    MAX_MARK_BYTES,
    decoded,
    encoded,
    readable,
    with_command,
    with_commands,
    without_paths,
)
from tmux_debug_mcp.vt.transcript import Transcript

NONCE = "0123456789abcdef"
TYPED = " . /run/user/1000/tmux-debug-mcp-4711-0a1b2c3d/12.3-echo-hi"
END = f"\033]7777;{NONCE};0\a"


def begin(command: str) -> str:
    return f"\033]7777;{NONCE};S0;{encoded(command)}\a"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("echo hi", "echo hi"),
        ("echo 'one'; printf \"%s\\n\" *", "echo 'one'; printf \"%s\\n\" *"),
        ("for i in 1 2\ndo echo $i\ndone\n", "for i in 1 2 ⏎ do echo $i ⏎ done"),
        ("echo Grüße 世界 🎉", "echo Grüße 世界 🎉"),
        ("echo \033[31m\a\t", r"echo \x1b[31m\x07\t"),
        ("x" * 400, "x" * 300 + "…"),
    ],
)
def test_command_is_told_in_one_line(command: str, shown: str) -> None:
    assert decoded(encoded(command)) == shown


@given(st.text(st.characters(blacklist_categories=["Cs"])))
def test_any_command_makes_a_mark_that_shells_print_as_it_is(command: str) -> None:
    mark = begin(command)

    assert not set("'\\") & set(encoded(command))
    assert len(mark.encode()) <= MAX_MARK_BYTES
    assert JOB_MARK.fullmatch(mark.encode())
    assert BEGIN.fullmatch(mark)


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("columns", [200, 40])
def test_command_stands_where_the_line_that_reads_it_was_typed(size: int, columns: int) -> None:
    data = f"$ {TYPED}\r\n{begin('echo hi')}hi\r\n{END}$ ".encode()
    transcript = Transcript(columns, 10)
    for start in range(0, len(data), size):
        transcript.feed(data[start : start + size])

    assert transcript.text(is_annotated=True) == "$ echo hi\nhi\n$ "


def test_lines_that_hooks_print_between_are_left_alone_and_so_is_what_others_typed() -> None:
    data = f"$ ls /tmp\r\n$ {TYPED}\r\nhooked\r\n{begin('echo hi')}hi\r\n"
    transcript = Transcript()
    transcript.feed(data.encode())

    assert transcript.text(is_annotated=True) == "$ ls /tmp\n$ echo hi\nhooked\nhi\n"
    assert with_command("$ . /tmp/file", "x") is None


DIRECTORY = "/run/user/1000/tmux-debug-mcp-4711-0a1b2c3d"
FILE = f"{DIRECTORY}/12.3-echo-hi.command"


@pytest.mark.parametrize(
    "message",
    [
        "bash: FILE: line 2: syntax error near unexpected token `;'",
        "-bash: FILE: line 1: unexpected EOF while looking for matching `''",
        "dash: 2: FILE: x: not found",
        "sh: FILE: line 1: x: not found",
        "FILE:1: command not found: x",
        "FILE:cd:1: no such file or directory: /x",
        "+FILE:1> echo hi",
        "++ builtin . FILE",
        "FILE (line 1): Unknown command",
        "from sourcing file FILE",
        "\tcalled on line 1 of file FILE",
        "        called on line 1 of file FILE",
        "source: Error while reading file 'FILE'",
    ],
)
def test_messages_of_shells_name_the_command_and_not_its_file(message: str) -> None:
    text = f"before\n{message}\nbehind {FILE}\n{message}"

    expected = text.replace(message, message.replace("FILE", "command"))
    shown = without_paths(text.replace("FILE", FILE))
    assert shown == expected.replace("FILE", FILE)
    assert with_commands(text.replace("FILE", FILE), {}) == shown

    raw = f"\033[?2004l\r\033[31m{message}\r\n"
    assert without_paths(raw.replace("FILE", FILE)) == raw.replace("FILE", "command")


@pytest.mark.parametrize(
    "printed",
    [
        "FILE",
        "the log says dash: 2: FILE: x: not found",
        "'FILE': is a name",
        "open('FILE', 'r')",
        "FILE FILE",
        "FILE.bak: a file",
        "bash: FILE-2",
        "see FILE:3",
    ],
)
def test_path_of_a_file_stays_where_programs_print_it(printed: str) -> None:
    text = f"{printed.replace('FILE', FILE)}\n"
    assert without_paths(text) == text


def test_marks_that_nothing_was_typed_for_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # Anybody can print what looks like one.
    looked = []
    monkeypatch.setattr(
        "tmux_debug_mcp.vt.transcript.with_command", lambda *words: looked.append(words)
    )
    transcript = Transcript()
    transcript.feed((f"{TYPED}\r\n" + begin("x") * 1000).encode())

    assert len(looked) <= 6


def test_raw_text_reads_the_same() -> None:
    data = f"\033[1m$ {TYPED}\033[m\r\n{begin('echo hi')}hi\r\n{END}$ {TYPED}\r\n"

    assert readable(data.encode()) == f"\033[1m$ echo hi\033[m\r\nhi\r\n$ {TYPED}\r\n"


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_what_is_typed_elsewhere_is_shown_as_the_command(kind: str) -> None:
    line = f"me@web:~$ {filled(ELSEWHERE[kind].line, nonce=NONCE)}"
    output = f"{line}\r\n\033]7777;{NONCE};1\a{begin('make test')}made\r\n{END}"
    transcript = Transcript(columns=80)
    transcript.feed(output.encode())

    assert transcript.text(is_annotated=True) == "me@web:~$ make test\nmade\n"
    assert with_commands(line, {NONCE: "make test"}) == "me@web:~$ make test"
    assert readable(output.encode()) == "me@web:~$ make test\r\nmade\r\n"


@pytest.mark.parametrize("answer", ["\\", "\\\\"])
def test_answers_are_marks(answer: str) -> None:
    question = f"$ {filled(QUESTION, nonce=NONCE)}\r\n"
    assert readable(f"{question}\033]7777;{NONCE};{answer}\a$ ".encode()) == f"{question}$ "
