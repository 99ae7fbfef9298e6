"""The steps of a string or an array: what is typed and pressed one after the other."""

from collections.abc import Sequence

import pytest

from tmux_debug_mcp.errors import KeysError
from tmux_debug_mcp.vt.steps import MAX_KEYS_BYTES, MAX_STEPS, confirmation, steps

Parts = Sequence[tuple[str, tuple[str, ...], str]]


def parts(keys: str | list[str], *, literal: bool = False, paste: bool = False) -> Parts:
    return [
        (step.text, step.keys, step.signal) for step in steps(keys, literal=literal, paste=paste)
    ]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("ls\n", [("ls", ("Enter",), "")]),
        ("./calc\n1\n2", [("./calc", ("Enter",), ""), ("1", ("Enter",), ""), ("2", (), "")]),
        ("a\n\nb Enter", [("a", ("Enter",), ""), ("", ("Enter",), ""), ("b", ("Enter",), "")]),
        ("a\r\nb\r\n", [("a", ("Enter",), ""), ("b", ("Enter",), "")]),
        ("Up Up Enter", [("", ("Up", "Up", "Enter"), "")]),
        (["Escape", ":wq Enter"], [("", ("Escape",), ""), (":wq", ("Enter",), "")]),
        (["run\n", "C-c", "SIGUSR1", "bt"], [
            ("run", ("Enter",), ""), ("", ("C-c",), ""), ("", (), "SIGUSR1"), ("bt", (), "")]),
        ("SIGTERM", [("", (), "SIGTERM")]),
        ("C-c SIGKILL", [("", ("C-c",), ""), ("", (), "SIGKILL")]),
        ("kill -SIGTERM 1 Enter", [("kill -SIGTERM 1", ("Enter",), "")]),
        ("SIG_DFL", [("SIG_DFL", (), "")]),
        ("SIGTERM\n", [("", (), "SIGTERM"), ("", ("Enter",), "")]),
        ("\n\n", [("", ("Enter", "Enter"), "")]),
    ],
)  # fmt: skip
def test_each_line_and_each_string_is_a_step(keys: str | list[str], expected: Parts) -> None:
    assert parts(keys) == expected


def test_literal_lines_are_steps_without_names() -> None:
    assert parts("C-c\nEnter\nSIGTERM", literal=True) == [
        ("C-c", ("Enter",), ""),
        ("Enter", ("Enter",), ""),
        ("SIGTERM", (), ""),
    ]


@pytest.mark.parametrize("argument", ["literal", "paste"])
@pytest.mark.parametrize("key", ["Enter", "Down", "C-c", "ctrl+c"])
def test_key_among_several_texts_is_refused_with_two_ways_to_press_it(
    argument: str, key: str
) -> None:
    with pytest.raises(KeysError) as raised:
        steps(["!1", key], **{argument: True})

    refused = f"'{key}' is a key name, but with parameter '{argument}' it would be typed as text, "
    assert str(raised.value).startswith(refused)
    assert "A line feed at the end of the text is Enter in the same write." in str(raised.value)


@pytest.mark.parametrize("keys", ["Enter", ["Enter"], ["press Enter", "q", "enter"]])
def test_key_name_that_is_the_only_text_or_a_part_of_one_is_typed(keys: str | list[str]) -> None:
    texts = [keys] if isinstance(keys, str) else keys
    assert parts(keys, literal=True) == [(text, (), "") for text in texts]


def test_paste_is_one_step() -> None:
    [step] = steps("a\nb\nC-c", paste=True)
    assert (step.text, step.is_paste, step.keys) == ("a\nb\nC-c", True, ())


def test_empty_line_of_a_text_is_text_and_not_a_key_alone() -> None:
    assert [step.is_text for step in steps("a\n\nb")] == [True, True, True]
    assert [step.is_text for step in steps("Enter")] == [False]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("ls\n", ""),
        ("x", ""),
        ("ls -la", " (Enter not pressed)"),
        ("ls\n\n", ""),
        ("C-c", ""),
        ("a\nbc\n", ""),
        (["a\n", "C-c", "SIGUSR1"], ""),
        (["break main", "Enter"], ""),
        (["ls", "C-c"], ""),
        (["C-c", "ls -la"], " (Enter not pressed)"),
        ("Down Enter pass Enter", " ('Down' is typed as text)"),
        ("Down the road", " (Enter not pressed; 'Down' is typed as text)"),
        ("down Enter pass Enter", ""),
        ("enter", " (Enter not pressed; 'Enter' is the key)"),
        ("c-c", " (Enter not pressed; 'C-c' is the key)"),
        ("ESC", " (Enter not pressed; 'Esc' is the key)"),
        ("sigint", " (Enter not pressed; 'SIGINT' is the signal)"),
        (["esc", "x\n"], " ('Esc' is the key)"),
        ("entered", " (Enter not pressed)"),
        (["esc", "up", "end", "home", "x\n"],
            " ('Esc' is the key; 'Up' is the key; 'End' is the key)"),
    ],
)  # fmt: skip
def test_confirmation_says_more_only_where_something_may_be_wrong(
    keys: str | list[str], said: str
) -> None:
    sent = steps(keys)
    assert confirmation("debug-1", sent, len(sent), None) == (f"Sent keys to pane 'debug-1'{said}")


@pytest.mark.parametrize(
    ("text", "said"), [("a\nb", " (Enter not pressed)"), ("a\nb\n", ""), ("a\r", "")]
)
def test_confirmation_of_a_paste_misses_enter_only_after_an_unfinished_line(
    text: str, said: str
) -> None:
    pasted = steps(text, paste=True)
    assert confirmation("debug-1", pasted, 1, None) == f"Sent keys to pane 'debug-1'{said}"


def test_text_without_enter_is_usual_to_a_program_that_draws() -> None:
    sent = steps("dd")
    assert confirmation("x", sent, 1, None) == "Sent keys to pane 'x' (Enter not pressed)"
    assert confirmation("x", sent, 1, None, is_for_screen=True) == "Sent keys to pane 'x'"


def test_confirmation_of_a_signal_says_nothing_more() -> None:
    assert confirmation("debug-1", steps("SIGTERM"), 1, None) == "Sent keys to pane 'debug-1'"


def test_confirmation_says_which_step_was_not_sent_and_tells_of_those_that_were() -> None:
    sent = steps(["one", "enter\n", "three"])
    assert confirmation("x", sent, 1, "the program exited with code 3") == (
        "Sent 1 of 3 steps to pane 'x' (Enter not pressed). "
        "Step 2 was not sent: the program exited with code 3."
    )


def test_what_looks_like_a_signal_and_is_none_is_an_error() -> None:
    with pytest.raises(KeysError, match="'SIGFOO' looks like a signal, but isn't one"):
        steps("SIGFOO")
    assert parts("SIGNIFICANT figures\n") == [("SIGNIFICANT figures", ("Enter",), "")]


def test_array_that_is_a_string_is_an_error_but_a_list_of_numbers_is_text() -> None:
    with pytest.raises(KeysError, match="a string that holds a JSON array"):
        steps(' ["Escape", ":q! Enter"]\n')
    with pytest.raises(KeysError, match="a string that holds a JSON array"):
        steps('["ls Enter", "C-c"]')
    assert steps('["ls Enter"]', literal=True)
    assert parts("[1, 2]\n") == [("[1, 2]", ("Enter",), "")]
    assert parts("[ -f x ]\n") == [("[ -f x ]", ("Enter",), "")]


@pytest.mark.parametrize("literal", [True, False])
def test_too_many_lines_are_an_error_that_names_paste(*, literal: bool) -> None:
    text = "line\n" * (MAX_STEPS + 1)
    with pytest.raises(KeysError, match="Send them in parts, or write the text to a file"):
        steps(text, literal=literal)
    assert len(steps("line\n" * MAX_STEPS, literal=literal)) == MAX_STEPS
    assert len(steps(text, paste=True)) == 1


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ("", "Parameter 'keys' is empty. "),
        ([], "Parameter 'keys' is empty. "),
        ([""], "Parameter 'keys' is empty. "),
        (["ls\n", ""], "Step 2 is empty. "),
        (["a\nb\n", "", "c", ""], "Step 2 is empty. "),
        ("a\0b", "Parameter 'keys' contains a NUL character"),
        (["\ud800"], "Parameter 'keys' contains a NUL character or half"),
        (["a", "b", "\ud800"], "Step 3 contains a NUL character or half"),
        (["a", "x" * (MAX_KEYS_BYTES + 1)], "Step 2 has 1048577 bytes; "),
    ],
)
@pytest.mark.parametrize("argument", ["", "literal", "paste"])
def test_what_can_not_be_typed_is_an_error_that_names_the_step(
    keys: str | list[str], what: str, argument: str
) -> None:
    with pytest.raises(KeysError) as wrong:
        steps(keys, **{argument: True} if argument else {})
    assert str(wrong.value).startswith(what)
