"""The keys table and its rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmux_debug_mcp.errors import KeysError, MixedKeysError
from tmux_debug_mcp.vt.keys import (
    Protocol,
    ProtocolTracker,
    codes_of,
    depend_on_modes,
    key_name,
    need_protocol,
)
from tmux_debug_mcp.vt.steps import (
    MAX_KEYS_BYTES,
    Keystrokes,
    check,
    pasted,
    pressed,
    read,
    typed,
    typed_at_once,
)

NAMED = [
    "Enter",
    "Escape",
    "Tab",
    "BTab",
    "Space",
    "BSpace",
    "Up",
    "Down",
    "Left",
    "Right",
    "Home",
    "End",
    "PPage",
    "NPage",
    "IC",
    "DC",
    "F1",
    "F2",
    "F3",
    "F4",
    "F5",
    "F6",
    "F7",
    "F8",
    "F9",
    "F10",
    "F11",
    "F12",
    "KP0",
    "KP5",
    "KP9",
    "KPEnter",
    "KP*",
    "KP+",
    "KP-",
    "KP.",
    "KP/",
]

SPELLINGS = {
    "Return": "Enter",
    "Esc": "Escape",
    "Delete": "DC",
    "Insert": "IC",
    "PageUp": "PPage",
    "PgUp": "PPage",
    "PageDown": "NPage",
    "PgDn": "NPage",
    "Backspace": "BSpace",
    "ArrowUp": "Up",
    "ArrowLeft": "Left",
    "C-c": "C-c",
    "C-C": "C-c",
    "Ctrl-C": "C-c",
    "Ctrl+C": "C-c",
    "ctrl+c": "C-c",
    "ctrl-c": "C-c",
    "alt+x": "M-x",
    "shift+Tab": "BTab",
    "Control-c": "C-c",
    "^C": "C-c",
    "^c": "C-c",
    "^[": "Escape",
    "^?": "BSpace",
    "^@": "C-Space",
    "^M": "Enter",
    "^I": "Tab",
    "^\\": "C-\\",
    "^]": "C-]",
    "^^": "C-^",
    "^_": "C-_",
    "C-/": "C-_",
    "C-Space": "C-Space",
    "M-x": "M-x",
    "M-X": "M-X",
    "Alt-x": "M-x",
    "Meta-Enter": "M-Enter",
    "M-;": "M-;",
    "M--": "M--",
    "C-M-x": "C-M-x",
    "M-C-x": "C-M-x",
    "S-Up": "S-Up",
    "C-S-Up": "C-S-Up",
    "Shift-Tab": "BTab",
    "S-F5": "S-F5",
    "C-Left": "C-Left",
    "M-BSpace": "M-BSpace",
}

NO_KEYS = [
    "x",
    "^",
    ";",
    "é",
    "日",
    "enter",
    "ENTER",
    "esc",
    "ls",
    "C",
    "F",
    "Ctrl",
    "-c",
    "^foo",
    "x-y",
    "EnterX",
]
NO_KEYS += [
    "C++",
    "c++",
    "s-expression",
    "meta-data",
    "control-plane",
    "C-3PO",
    "S-expression",
    "Meta-analysis",
]


def parse(keys: str, *, literal: bool = False) -> Keystrokes:
    """Return what a string of one line types or presses."""
    if literal:
        return typed_at_once(keys)
    check(keys)
    reading = read(keys)
    if reading.names:
        return pressed(reading.names)
    return typed(reading.text, reading.enters)


@pytest.mark.parametrize("name", NAMED)
def test_tmux_names_are_keys(name: str) -> None:
    assert parse(name).keys == (name,)


@pytest.mark.parametrize(("word", "name"), SPELLINGS.items())
def test_well_known_spellings_are_tmux_names(word: str, name: str) -> None:
    assert parse(word).keys == (name,)


@pytest.mark.parametrize("word", NO_KEYS)
def test_other_words_are_text(word: str) -> None:
    assert (parse(word).text, parse(word).keys) == (word, ())


@pytest.mark.parametrize(
    "keys",
    [
        "C-",
        "F99",
        "F0",
        "F13",
        "S-a",
        "C-1",
        "C-é",
        "^é",
        "ctrl-é",
        "M-",
        "C-F99",
        "C-enter",
        "C-C-x",
    ],
)
def test_what_looks_like_a_key_and_is_none_is_an_error_that_shows_the_way(keys: str) -> None:
    with pytest.raises(
        KeysError, match=r"looks like a key, but isn't one\. Keys are named like .* literal"
    ):
        parse(keys)


@pytest.mark.parametrize(
    ("keys", "key", "steps"),
    [
        ("Escape :wq Enter", "Escape", '["Escape", ":wq Enter"]'),
        ("Escape\n:wq\n", "Escape", '["Escape", ":wq Enter"]'),
        ("C-c ls", "C-c", '["C-c", "ls"]'),
        ("^C ls\n", "^C", '["^C", "ls Enter"]'),
        ("C-a x Enter", "C-a", '["C-a", "x Enter"]'),
        ("hello C-a", "C-a", '["hello", "C-a"]'),
        ("hello Tab Enter", "Tab", '["hello", "Tab Enter"]'),
        ("Escape Escape dd F5", "Escape", '["Escape Escape", "dd", "F5"]'),
        ("Up j Enter", "Up", '["Up", "j Enter"]'),
        ("C-c\nrm -rf build\nmake\n", "C-c", '["C-c", "rm -rf build\\nmake Enter"]'),
        ("C-c  ls  -la " + "x" * 300, "C-c", f'["C-c", "ls  -la {"x" * 300}"]'),
        ("C-c " + "x" * 5000, "C-c", '["C-c", "the text"]'),
    ],
)
def test_mixture_of_keys_and_text_is_an_error_that_shows_the_array_to_send(
    keys: str, key: str, steps: str
) -> None:
    with pytest.raises(MixedKeysError) as raised:
        parse(keys)
    assert str(raised.value).startswith(f"'{key}' is a key name, which can't be mixed with text.")
    assert f"Give an array of steps: {steps}; or set literal" in str(raised.value)


@pytest.mark.parametrize(
    "keys",
    [
        "Up three times",
        "Space bar",
        "Enter your name",
        "go Home",
        "the End",
        "j j Enter",
        "Washington DC Enter",
    ],
)
def test_english_word_that_is_a_key_too_does_not_make_a_text_a_mixture(keys: str) -> None:
    assert parse(keys).text == keys.removesuffix(" Enter")


def test_one_wrong_key_among_keys_is_an_error_rather_than_text() -> None:
    with pytest.raises(KeysError, match="'F99' looks like a key"):
        parse("F99 C-c")


@pytest.mark.parametrize(
    ("keys", "pressed"),
    [
        ("Up Up Enter", ("Up", "Up", "Enter")),
        ("C-x C-s", ("C-x", "C-s")),
        ("Up\n", ("Up", "Enter")),
        ("\n", ("Enter",)),
        ("\r\n\r\n", ("Enter", "Enter")),
        ("Escape  ", ("Escape",)),
    ],
)
def test_only_key_names_are_pressed_in_order(keys: str, pressed: tuple[str, ...]) -> None:
    assert (parse(keys).text, parse(keys).keys) == ("", pressed)


@pytest.mark.parametrize(
    ("keys", "text", "enters"),
    [
        ("ls -la", "ls -la", 0),
        ("ls -la Enter", "ls -la", 1),
        ("ls -la\n", "ls -la", 1),
        ("ls -la\r\n", "ls -la", 1),
        ("ls\n\n", "ls", 2),
        ("ls Enter Enter", "ls", 2),
        ("ls Enter\n", "ls", 1),
        ("ls Enter\n\n", "ls", 2),
        ("ls\nEnter", "ls", 1),
        ("Enter your name", "Enter your name", 0),
        ("Enter your name Enter", "Enter your name", 1),
        ("Enter Enter your name", "Enter Enter your name", 0),
        ("pressEnter", "pressEnter", 0),
        ("echo hi;", "echo hi;", 0),
        ("  indented\n", "  indented", 1),
        (" ", " ", 0),
        (" \n", " ", 1),
        ("a\tb", "a\tb", 0),
    ],
)
def test_text_is_typed_and_enter_pressed_for_its_end(keys: str, text: str, enters: int) -> None:
    parsed = parse(keys)

    assert (parsed.text, parsed.keys, parsed.is_paste) == (text, ("Enter",) * enters, False)


@pytest.mark.parametrize(
    "keys", ["Enter", "C-c", "F99", "Escape :wq Enter", "^C", "Up Up", "a;", "-x", "#{x}"]
)
def test_literal_types_everything(keys: str) -> None:
    assert (parse(keys, literal=True).text, parse(keys, literal=True).keys) == (keys, ())


def test_literal_line_feed_is_the_enter_key() -> None:
    typed = parse("a\nb\n", literal=True)
    assert (typed.text, typed.keys) == ("a\rb", ("Enter",))


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ("", r"is empty\. Give"),
        ("a\0b", r"NUL character or half a surrogate pair\. Remove it; 'C-Space' sends NUL"),
        ("a\ud800", "half a surrogate pair"),
        (
            "é" * (MAX_KEYS_BYTES // 2 + 1),
            r"has 1048578 bytes; one call takes at most 1048576\. Send it in parts",
        ),
    ],
)
@pytest.mark.parametrize("literal", [False, True])
def test_what_no_keyboard_types_is_an_error_that_shows_the_way(
    keys: str, sentence: str, *, literal: bool
) -> None:
    with pytest.raises(KeysError, match=sentence):
        parse(keys, literal=literal)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_every_literal_string_is_typed_as_it_is(keys: str) -> None:
    typed = parse(keys, literal=True)
    everything = typed.text + codes_of(typed.keys)
    assert everything.replace("\r", "\n") == keys.replace("\r", "\n")


@given(st.text(min_size=1))
def test_no_string_makes_parsing_fail_but_by_its_own_error(keys: str) -> None:
    try:
        parsed = parse(keys)
    except KeysError:
        return
    assert parsed.text or parsed.keys
    assert all(key_name(key) for key in parsed.keys)
    for protocol in (Protocol.XTERM, Protocol.KITTY):
        codes = codes_of(parsed.keys, "0 1", protocol)
        assert len(codes) >= len(parsed.keys)


@pytest.mark.parametrize(
    "keys", ["^" * 1_000_000, "x" + " Enter" * 20_000, "Up " * 20_000, "Up " * 19_999 + "\n"]
)
def test_long_strings_are_parsed(keys: str) -> None:
    assert parse(keys).text or parse(keys).keys


@pytest.mark.parametrize(
    "keys",
    [
        "x" + " Enter" * 20_001,
        "Up " * 20_001,
        "Up " * 20_000 + "\n",
        "\n" * 20_001,
        "x" + "\n" * 20_001,
    ],
)
def test_more_keys_than_a_person_presses_are_refused(keys: str) -> None:
    with pytest.raises(KeysError, match="more than 20000 keys"):
        parse(keys)
    assert parse(keys, literal=True).text


def test_long_wrong_key_is_not_repeated_whole() -> None:
    with pytest.raises(KeysError) as error:
        parse("C-" * 300_000 + "x")

    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("keys", "normal", "application"),
    [
        ("Up Left", "\033[A\033[D", "\033OA\033OD"),
        ("Home End", "\033[H\033[F", "\033[1~\033[4~"),
        ("S-Up C-Home M-F5 C-M-S-PageDown", "\033[1;2A\033[1;5H\033[15;3~\033[6;8~", None),
        ("F1 F4 F12 S-F1", "\033OP\033OS\033[24~\033[1;2P", None),
        ("KP0 KP* KPEnter M-KP5", "0*\r\0335", "\033Op\033Oj\033OM\033\033Ou"),
        ("C-a C-Space C-_ C-\\\\ C-] C-^", "\1\0\x1f\x1c\x1d\x1e", None),
        ("M-x M-X M-é C-M-a M-Enter M--", "\033x\033X\033é\033\1\033\r\033-", None),
        ("S-Tab M-BTab", "\033[Z\033\033[Z", None),
    ],
)
def test_keys_send_what_a_terminal_sends(keys: str, normal: str, application: str | None) -> None:
    pressed = parse(keys.replace("\\\\", "\\")).keys

    assert codes_of(pressed) == normal
    assert codes_of(pressed, "1 1") == (application or normal)
    assert depend_on_modes(pressed) == (application is not None)


def test_text_that_ends_a_paste_before_its_end_is_refused() -> None:
    with pytest.raises(KeysError, match="would end the paste"):
        pasted("one\n\033[201~two\n")
    assert parse("one\n\033[201~two\n", literal=True).text


@pytest.mark.parametrize(
    ("key", "xterm", "kitty", "plain"),
    [
        ("S-Enter", "\033[27;2;13~", "\033[13;2u", "Enter"),
        ("C-Enter", "\033[27;5;13~", "\033[13;5u", "Enter"),
        ("C-M-Enter", "\033[27;7;13~", "\033[13;7u", "M-Enter"),
        ("C-Tab", "\033[27;5;9~", "\033[9;5u", "Tab"),
        ("C-S-Tab", "\033[27;6;9~", "\033[9;6u", "BTab"),
        ("S-Space", "\033[27;2;32~", "\033[32;2u", "Space"),
        ("C-BSpace", "\033[27;5;127~", "\033[127;5u", "BSpace"),
        ("S-Escape", "\033[27;2;27~", "\033[27;2u", "Escape"),
        ("C-KP5", "\033[27;5;53~", "\033[57404;5u", "KP5"),
        ("S-KPEnter", "\033[27;2;13~", "\033[57414;2u", "KPEnter"),
    ],
)
def test_key_without_a_code_of_its_own_has_one_in_a_protocol(
    key: str, xterm: str, kitty: str, plain: str
) -> None:
    pressed = parse(key).keys
    assert need_protocol(pressed)
    assert codes_of(pressed, protocol=Protocol.XTERM) == xterm
    assert codes_of(pressed, protocol=Protocol.KITTY) == kitty
    with pytest.raises(KeysError, match=f"would reach the program as '{plain}'"):
        codes_of(pressed)


@pytest.mark.parametrize(
    ("printed", "protocol"),
    [
        ("", "none"),
        ("\033[>4;1m", "modifyOtherKeys"),
        ("\033[>4;2m", "modifyOtherKeys"),
        ("\033[>4;2m\033[>4m", "none"),
        ("\033[>4;2m\033[>4;0m", "none"),
        ("\033[>4;2m\033[>4n", "none"),
        ("\033[>4;2m\033c", "none"),
        ("\033[>1u", "kitty"),
        ("\033[>4;2m\033[>7u\033[<u", "modifyOtherKeys"),
        ("\033[>1u\033[>u", "none"),
        ("\033[>1u\033[>2u\033[<2u", "none"),
        ("\033[>1u\033[>1u\033[<u", "kitty"),
        ("\033[<u\033[<9u\033[>1u", "kitty"),
        ("\033[=1u", "kitty"),
        ("\033[=1;2u\033[=4;2u", "kitty"),
        ("\033[=1u\033[=1;3u", "none"),
        ("\033[>1u\033[?1049h", "none"),
        ("\033[?1049h\033[>1u\033[?1049l", "none"),
        ("\033[>1u\033[?1049h\033[>1u\033[?1049l", "kitty"),
        ("\033[u\033[?u\033[4;2m\033[>5;2m", "none"),
    ],
)
def test_protocol_is_the_one_that_output_asked_for_however_it_is_cut(
    printed: str, protocol: str
) -> None:
    data = b"text" + printed.encode() + b"more"
    for size in range(1, len(data) + 1):
        requests = ProtocolTracker()
        for start in range(0, len(data), size):
            requests.feed(data[start : start + size], start)
        assert requests.protocol.value == protocol
        assert requests.end == len(data)


def test_request_is_not_joined_from_what_lies_around_lost_output() -> None:
    requests = ProtocolTracker()
    requests.feed(b"\033[>", 0)
    requests.feed(b"1u", 1000)
    assert requests.protocol is Protocol.NONE
