"""Typing into a terminal session: text, keys, and keys that depend on the program."""

from functools import partial

import pytest
from support import eventually, own_tmux, python
from toolsets import Terminal

from tmux_debug_mcp.vt.keys import key_name

# Programs that edit a line.
EDITORS = {
    "bash": "bash --norc",
    "fish": "fish --no-config",
    "zsh with terminfo": "zsh -f -i",
    "python": python("import readline; print('got', input('> '))"),
    "an xterm's user": python(
        "import os, tty\ntty.setraw(0)\nprint('> ', end='', flush=True)\ntext = ''\n"
        "while not text.endswith('\\r'): text += os.read(0, 1).decode()\n"
        "print(repr(text.replace(chr(27) + '[H', 'HOME').replace(chr(27) + '[F', 'END')))"
    ),
}
# Has zsh switch the keypad on when it edits a line.
ZSH = (
    "bindkey $terminfo[khome] beginning-of-line; bindkey $terminfo[kend] end-of-line; "
    "zle-line-init() { echoti smkx }; zle -N zle-line-init; clear\n"
)


async def test_text_is_typed_as_it_is_and_counted(term: Terminal) -> None:
    await term.text("createSession", name="c", command="stty raw -echo; exec cat -vT")
    await term.shows_foreground("c", "cat")
    trick = "a;b; -x #{pane_id} $(id) é😀 \\n 'q' \"d\" Enter C-c ^C ~"
    answer = await term.text("type", text=trick, session="c")

    assert answer == f"Typed {len(trick)} character(s) to terminal"
    assert (await term.shows("^C ~", session="c")).startswith("a;b; -x #{pane_id} $(id) ")


async def test_line_feed_in_text_is_enter(term: Terminal) -> None:
    assert await term.text("type", text="echo $((40+2))\n") == "Typed 15 character(s) to terminal"
    assert "\n42\n" in await term.shows("\n42\n")


KEYS = [
    ("Enter", "^M"), ("Tab", "^I"), ("Escape", "^["), ("Backspace", "^?"), ("Delete", "^[[3~"),
    ("Insert", "^[[2~"), ("Home", "^[[H"), ("End", "^[[F"),
    ("PageUp", "^[[5~"), ("PageDown", "^[[6~"),
    ("ArrowUp", "^[[A"), ("ArrowDown", "^[[B"), ("ArrowLeft", "^[[D"), ("ArrowRight", "^[[C"),
    ("F1", "^[OP"), ("F4", "^[OS"), ("F5", "^[[15~"), ("F12", "^[[24~"),
    ("Ctrl+A", "^A"), ("Ctrl+c", "^C"), ("ctrl+c", "^C"), ("Ctrl+Z", "^Z"), ("Ctrl+[", "^["),
    ("Ctrl+\\", "^\\"), ("Ctrl+Space", "^@"),
]  # fmt: skip


def is_shown(keys: str, content: str) -> bool:
    """Tell whether a screen has these keys and nothing else; they may be on several rows."""
    return content.replace("\n", "").rstrip() == keys


async def test_keys_are_those_of_a_terminal(term: Terminal) -> None:
    await term.text("createSession", name="c", command="stty raw -echo; exec cat -vT")
    await term.shows_foreground("c", "cat")

    shown = ""
    for key, sent in KEYS:
        assert await term.text("sendKey", key=key, session="c") == f"Sent key: {key}"
        shown += sent
        await term.shows(partial(is_shown, shown), session="c")


@pytest.mark.parametrize("letter", "BDEFGHIJKLMNOPQRSTUVWXY")
async def test_every_letter_is_a_key_with_ctrl(letter: str) -> None:
    assert key_name(f"Ctrl+{letter}")


async def test_unknown_key_is_an_error_that_lists_the_keys(term: Terminal) -> None:
    for key in ("Foo", "Ctrl+", "F13", "a", "enter", ""):
        error = await term.error("sendKey", key=key)
        assert "ArrowUp" in error or "not empty" in error
    assert await term.json("listSessions") == []


async def test_missing_or_huge_text_is_an_error(term: Terminal) -> None:
    assert "Parameter 'text' is missing" in await term.error("type")
    assert "is not empty" in await term.error("type", text="")
    assert "one call takes at most 1048576." in await term.error("type", text="é" * 600_000)


# Home and End are what an xterm sends, but for programs that have switched the keypad on.


@pytest.mark.parametrize("editor", EDITORS)
async def test_home_and_end_go_to_the_ends_of_a_line_editors_line(
    term: Terminal, editor: str
) -> None:
    await term.blocks("createSession", name="a", command=EDITORS[editor])
    if "zsh" in editor:
        await term.blocks("type", session="a", text=ZSH)
        target = (await term.engine.find("a")).target
        keypad = ("display-message", "-p", "-t", target, "#{keypad_flag}")
        await eventually(lambda: own_tmux(*keypad) == "1\n")
    await term.shows(lambda content: bool(content.strip()), session="a")
    for text, key in (("bc", "Home"), ("echo a", "End")):
        await term.blocks("type", session="a", text=text)
        await term.blocks("sendKey", session="a", key=key)
    await term.blocks("type", session="a", text="d\n")

    wanted = {"python": "got echo abcd", "an xterm's user": "'bcHOMEecho aENDd"}
    await term.shows(wanted.get(editor, "\nabcd"), session="a")


async def test_home_and_end_go_to_the_ends_of_what_less_shows(term: Terminal) -> None:
    await term.blocks("createSession", name="a", command="seq -f 'row %g' 1 500 | less")
    await term.shows("row 39\n", session="a")
    await term.blocks("sendKey", session="a", key="End")
    await term.shows("row 500", session="a")
    await term.blocks("sendKey", session="a", key="Home")
    await term.shows("row 1\n", session="a")


async def test_home_and_end_go_to_the_ends_of_a_dialogs_line(term: Terminal) -> None:
    await term.blocks(
        "createSession", name="a", command="dialog --inputbox text 8 40 bc 2>/dev/null"
    )
    await term.shows("bc", session="a")
    for text, key in (("d", "Home"), ("a", "End")):
        await term.blocks("type", session="a", text=text)
        await term.blocks("sendKey", session="a", key=key)
    await term.blocks("type", session="a", text="e")
    await term.shows("abcde", session="a")
