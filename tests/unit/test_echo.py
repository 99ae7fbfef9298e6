"""Echo: what of a pane's output is what was typed."""

import pytest

from tmux_debug_mcp.vt.echo import Echo, Echoer, TypedText, rows_without_typed
from tmux_debug_mcp.vt.rows import Line


def echo_of(*texts: str, echoes: Echoer = Echoer.TERMINAL) -> Echo:
    echo = Echo()
    echo.expect(TypedText(0, texts, echoes, 0))
    return echo


def test_without_keys_all_lines_but_empty_ones_are_output() -> None:
    assert Echo().without([Line("one"), Line("")], [Line("two")]) == ["one", "two"]


def test_terminal_echoes_once_and_the_answer_that_equals_it_is_output() -> None:
    echo = echo_of("hello")

    assert echo.without([Line("$ hello")], []) == []
    assert echo.without([Line("hello")], []) == ["hello"]


def test_echo_stays_echo_while_its_line_is_open() -> None:
    echo = echo_of("hello")

    assert echo.without([], [Line("hel")]) == []
    assert echo.without([], [Line("hello")]) == []
    assert echo.without([], [Line("hello"), Line("hello")]) == ["hello"]
    assert echo.without([Line("hello")], [Line("hello")]) == ["hello"]


def test_terminal_that_echoes_is_believed_where_the_end_of_editing_is_not_in_the_log_yet() -> None:
    echo = echo_of("make")

    assert echo.without([Line("make"), Line("$ make", is_edited=True), Line("make")], []) == [
        "make"
    ]


def test_what_was_printed_beside_the_echo_is_output() -> None:
    assert echo_of("hello").without([Line("hello world")], []) == [" world"]


def test_lines_that_were_typed_are_echoed_in_their_order() -> None:
    echo = echo_of("one", "two")

    assert echo.without([Line("one"), Line("two"), Line("one"), Line("two")], []) == ["one", "two"]


def test_without_echo_the_same_text_is_an_answer() -> None:
    assert echo_of("secret", echoes=Echoer.NOBODY).without([Line("secret")], []) == ["secret"]


@pytest.mark.parametrize(
    ("line", "output"), [("> hello", []), ("hello there", ["hello there"]), ("> hello  ", ["  "])]
)
def test_program_that_reads_keys_shows_them_at_the_end_of_a_line(
    line: str, output: list[str]
) -> None:
    found = echo_of("hello", echoes=Echoer.PROGRAM).without([Line(line)], [])

    assert found == [text for text in output if text.strip()]


def test_key_that_is_a_command_hides_nothing_of_the_answer() -> None:
    echo = echo_of("q", echoes=Echoer.PROGRAM)

    assert echo.without([], [Line("quit? yes")]) == ["quit? yes"]


def test_line_that_a_line_editor_was_in_is_echo_and_what_it_shows_again_later() -> None:
    echo = echo_of("make", echoes=Echoer.EDITOR)

    assert echo.without(
        [Line("$ make", is_edited=True, is_command=True), Line("I make it")], []
    ) == ["I make it"]
    assert echo.without([], [Line("$ make", is_edited=True)]) == []
    assert echo.without([], [Line("$ ma", is_edited=True)]) == ["$ "]


@pytest.mark.parametrize("echoes", [Echoer.TERMINAL, Echoer.PROGRAM])
def test_one_of_thousands_of_lines_is_known_at_the_end_of_a_line(echoes: Echoer) -> None:
    echo = echo_of(*(f"line {number}" for number in range(5000)), echoes=echoes)

    assert echo.without([Line("> line 3000"), Line("> line 3001"), Line("line 3000")], []) == [
        "line 3000"
    ]


def test_one_of_thousands_of_lines_is_known_where_a_line_editor_shows_it() -> None:
    echo = Echo([TypedText(0, [f"line {number}" for number in range(5000)], Echoer.EDITOR, 0)])

    assert (
        echo.without(
            [Line("$ line 1000", is_edited=True), Line("$ line 1001 ", is_edited=True)], []
        )
        == []
    )
    assert echo.without([Line("$ line 1002! line 1003 more", is_edited=True)], []) == [" more"]


def test_row_of_a_long_line_that_a_line_editor_has_broken_is_echo() -> None:
    text = "true " + "x" * 300 + " needle; sleep 3"
    echo = echo_of(text, echoes=Echoer.EDITOR)

    lines = [
        Line("% " + text[:198], is_edited=True, is_command=True),
        Line(text[198:], is_edited=True),
    ]
    assert echo.without(lines, []) == []
    assert echo.without([Line("needle")], []) == ["needle"]


def test_many_equal_lines_that_a_line_editor_shows_take_no_time_each() -> None:
    echo = echo_of(*["same"] * 50_000, echoes=Echoer.EDITOR)

    for _ in range(100):
        assert echo.without([Line("same", is_edited=True)] * 100, []) == []
    assert len(echo._early) < 100


@pytest.mark.parametrize(
    ("rows", "typed", "output"),
    [
        (["$ make all", "done"], "make all", ["", "done"]),
        (["$ make", "all", "done"], "make all", ["$ make", "all", "done"]),
        (["$ make tes", "t && echo ", "done: done"], "make test && echo done", ["", "", ": done"]),
        (["$ make tes", "t && echo", "done: done"], "make test && echo done", ["", "", ": done"]),
        (["$ 日本語 e", "cho ok"], "日本語 echo", ["", " ok"]),
        (["$ ls", "$ ls", "", "ls: ok"], "ls", ["", "", "", ": ok"]),
        (["", "ok"], "y", ["", "ok"]),
    ],
)
def test_rows_are_output_but_for_typed_text_and_what_is_before_it(
    rows: list[str], typed: str, output: list[str]
) -> None:
    assert rows_without_typed(rows, 10, [typed]) == output
