"""What a shell elsewhere is given to read: lines that a terminal takes as they are."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.panes.shells.dialects import ELSEWHERE, MAX_LINE_CHARACTERS
from tmux_debug_mcp.panes.shells.jobs import Door, TypedJob

DOOR = Door(1 << 30, "ssh", 1)


class Log:
    """An empty log."""

    size = 0


def typed(command: str, kind: str = "0", code: int = 0) -> list[str]:
    """Return the lines that are typed for a command."""
    job = TypedJob(command, DOOR, Log(), Clock())  # type: ignore[arg-type]
    return job.keys(ELSEWHERE[kind], code).removesuffix("\r").split("\r")


def decoded(lines: list[str]) -> str:
    """Return what lines tell, as `printf %b` prints it."""
    words = "".join(line.removeprefix("@") for line in lines)
    text = re.sub(r"\\0(\d{3})", lambda octal: chr(int(octal[1], 8)), words)
    return text.encode("latin-1").decode()


@given(command=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")))
@pytest.mark.parametrize("kind", ELSEWHERE)
def test_lines_are_what_any_terminal_takes(kind: str, command: str) -> None:
    *lines, last = typed(command, kind)

    assert ELSEWHERE[kind].quote(f"{command}\n") in decoded(lines)
    assert all(len(line) <= MAX_LINE_CHARACTERS for line in lines)
    # A shell that gets one by accident takes it for the name of a command.
    assert all(re.fullmatch(r"@[\w\\,./:-]*", line, re.ASCII) for line in lines)
    assert last == f"@={sum(map(len, lines)) - len(lines)}"


@pytest.mark.parametrize(
    ("command", "is_restored"),
    [("echo $?", True), ("echo ${?}", True), ("echo $status", True), ("echo hi", False)],
)
def test_exit_code_is_restored_where_a_command_may_read_it(
    command: str, *, is_restored: bool
) -> None:
    assert ("(exit 42)" in decoded(typed(command, code=42)[:-1])) is is_restored
