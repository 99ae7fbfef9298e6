"""Transcripts: what a terminal shows, line by line, from bytes in pieces of any size."""

import itertools
from unicodedata import category

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tmux_debug_mcp.vt.rows import Line, cell_width
from tmux_debug_mcp.vt.transcript import Transcript

CASES = [
    (b"", ""),
    (b"one\r\ntwo\r\n", "one\ntwo\n"),
    (b"no final line feed", "no final line feed"),
    (b"blanks at the end  \r\n$ ", "blanks at the end  \n$ "),
    (b"a\tb\t\r\n", "a\tb\t\n"),
    (
        b"\033[1;31merror\033[0m: \033]0;title\a\033]8;;http://x\033\\link\033]8;;\033\\\r\n",
        "error: link\n",
    ),
    # Repeated is a character of ASCII that comes right before, and within its row.
    (b"ab\033[5b|\r\na\r\n\033[3b|\r\n", "abbbbbb|\na\n|\n"),
    (b"a\033[m\033[3b|m\033[b\033[2b|\xc3\xa9\033[3b|\033[>2b|\r\n", "a|mm|\xe9||\n"),
    (b"y" * 190 + b"z\033[30b|\r\n", "y" * 190 + "z" * 10 + "|\n"),
    (b"\033(0q\033[3b\033(B|\r\n", "\u2500\u2500\u2500\u2500|\n"),
    # A cell takes so many joined characters and no more.
    (b"a" + "\u0301".encode() * 100 + b"b\r\n", "a" + "\u0301" * 15 + "b\n"),
    (b"10%\r50%\r100%\r\n", "100%\n"),
    (b"downloading\r\033[Kdone\r\n", "done\n"),
    (b"abc\b\bX\r\n", "aXc\n"),
    (b"match\033[m\033[K\r\n", "match\n"),
    (b"one\r\ntwo\r\n\033[2A\033[2Kthree\r\n\r\n", "three\ntwo\n"),
    (b"x" * 450 + b"\r\ny", "x" * 450 + "\ny"),
    (b"x" * 200 + b"\r\ny", "x" * 200 + "\ny"),
    ("Grüße 世界 🎉\r\n".encode(), "Grüße 世界 🎉\n"),
    ("世界\r界\r\n".encode(), "界界\n"),
    ("e\u0301\b\b\r\n".encode(), "e\u0301\n"),
    (b"before\r\n\033[?1049h\033[Hmenu\033[?1049lafter\r\n", "before\nafter\n"),
    (b"before\r\n\033[?1049h\033[Hmenu", "before\nmenu\n"),
    (b"before\r\n\033[?25;1049hmenu\r\n\033[?1049;25lafter\r\n", "before\nafter\n"),
    (b"one\r\n\033[99999999999999999999A\033[1;" + b"9" * 3000 + b"Htwo", "one\ntwo"),
    (b"old\r\n\033[H\033[2Jnew\r\n", "old\nnew\n"),
    (b"a\000\016\017\007b\r\n", "ab\n"),
    # C1 control characters and DEL do nothing, and cut off a sequence.
    ("a\x9b31mb\x85c\x7fd\x9d0;e\x9c\033[3\x801A\r\n".encode(), "a31mbcd0;e1A\n"),
    ("\x90plain\u0301\x80\r\n".encode(), "plain\u0301\n"),
    (b"\033(0\033(B\033=\033>ok\r\n", "ok\n"),
    (b"\033(0lqqk\033(B lqqk\r\n", "┌──┐ lqqk\n"),
    (b"\033)0\016lqk\017lqk\r\n\016x\r\nx\017x\r\n", "┌─┐lqk\n│\n│x\n"),
    (b"\016q\033)0q\033)Bq\033(0q\017q\r\n", "q─qq─\n"),
    (b"\033(0q\0337\033(Bq\0338q\r\n\033[uq\033[sq\r\n", "───\n"),
    (b"\0337\033(0q\r\n\033cq\033(0q\0338q\r\n", "─\nq─\n"),
    (
        "\033(0+,-.0`afghijklmnopqrstuvwxyz{|}~ABé12\033(B\r\n".encode(),
        "→←↑↓▮◆▒°±▒☃┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·ABé12\n",
    ),
    # The kitty keyboard protocol, and sequences that end as those that move or erase.
    (b"one\r\ntwo\r\n$ \033[=5uls\r\nout\r\n", "one\ntwo\n$ ls\nout\n"),
    (b"one\r\ntwo\033[>5u\033[>1u\033[<u\033[<2u\033[?u!\r\n", "one\ntwo!\n"),
    (
        b"one\r\ntwo\033[2 @\033[2 A\033[>2K\033[=1A\033[?1K\033[!p\033[1$r\033[2'}!\r\n",
        "one\ntwo!\n",
    ),
    (b"one\r\ntwo\033[1?A\033[2<K\033[1 2A\033[1:2A\033[1;2\030!\033[1;\033[m\r\n", "one\ntwo!\n"),
    (
        b"\033(0one\r\ntwo\r\n\033(Bthree\r\n" + b"four\r\n" * 60,
        "⎺┼e\n├┬⎺\nthree\n" + "four\n" * 60,
    ),
]


def fed(data: bytes, size: int) -> Transcript:
    """Return a transcript that was fed pieces of this size."""
    transcript = Transcript()
    for start in range(0, len(data), size):
        transcript.feed(data[start : start + size])
    return transcript


@pytest.mark.parametrize(("data", "text"), CASES)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_bytes_read_as_a_terminal_shows_them(data: bytes, text: str, size: int) -> None:
    assert fed(data, size).text() == text


# Some letters, such as Hangul's fillers, have no cell of their own.
CHARACTERS = st.characters(blacklist_categories=["C", "Z", "M"]).filter(cell_width)


@given(st.lists(st.text(CHARACTERS).map(lambda line: line[:150])))
def test_plain_lines_pass_as_they_are(lines: list[str]) -> None:
    text = "\n".join(lines)
    data = text.replace("\n", "\r\n").encode()

    assert fed(data, 4096).text() == text
    assert fed(data, 5).text() == text


PAYLOADS = [
    *(b"x", b"iVBORw0KGgo=", b"#0;2;0;0;0~-\r\n", "é 世".encode(), b"1;", b"(", b"\xff\0\t"),
    "\x9b\x7fA\x85".encode(),
]
# What begins a string or another sequence, and what ends one.
INTRODUCERS = [
    b"\033]",
    b"\033]0;",
    b"\033P",
    b"\033_G",
    b"\033^",
    b"\033X",
    b"\033k",
    b"\033[",
    b"\033(",
]
TERMINATORS = [b"\a", b"\033\\", b"\030", b"\032", b"\033[m", b"\033\033\\", b"m", b"B", b""]
LONG = st.builds(
    lambda introducer, payload, size, terminator: introducer + payload * size + terminator,
    st.sampled_from(INTRODUCERS),
    st.sampled_from(PAYLOADS),
    st.sampled_from([0, 1, 100, 1023, 1024, 1025, 4090, 4096, 200_000 // 13]),
    st.sampled_from(TERMINATORS),
)


@given(
    st.lists(st.one_of(st.binary(max_size=300), LONG), max_size=6).map(b"".join),
    st.lists(st.integers(0, 200_000), max_size=12),
)
def test_no_bytes_are_too_odd_and_pieces_make_no_difference(data: bytes, cuts: list[int]) -> None:
    whole = fed(data, len(data) or 1)
    pieces = Transcript()
    for start, end in itertools.pairwise([0, *sorted(cuts), max([len(data), *cuts])]):
        pieces.feed(data[start:end])

    assert pieces.held_bytes == whole.held_bytes
    assert pieces.text() == whole.text()
    assert fed(data, 1 + len(data) // 5000).text() == whole.text()
    assert {one for one in whole.text() if category(one) == "Cc"} <= {"\t", "\n"}


@pytest.mark.parametrize("size", [0, 4090, 4100, 200_000])
@pytest.mark.parametrize("payload", [b"x", b"iVBO\r\n", b"word "])
@pytest.mark.parametrize(
    ("introducer", "terminator"),
    [
        (b"\033]1337;File=inline=1:", b"\a"),
        (b"\033]52;c;", b"\033\\"),
        (b"\033P0;1q", b"\033\\"),
        (b"\033_Gf=100;", b"\033\\"),
        (b"\033ktitle", b"\033\\"),
        (b"\033Ptmux;\033\033]52;c;", b"\a\033\\"),
        (b"\033]0;", b"\030"),
        (b"\033P", b"\032"),
        (b"\033X", b"\033[31m"),
    ],
)
def test_string_of_any_length_shows_nothing(
    introducer: bytes, payload: bytes, size: int, terminator: bytes
) -> None:
    string = introducer + payload * (size // len(payload)) + terminator
    data = b"one" + string + b"two\r\nthree\r\n"

    assert fed(data, len(data)).text() == "onetwo\nthree\n"
    assert fed(data, 4096).text() == "onetwo\nthree\n"


def test_string_without_end_is_dropped_as_it_comes() -> None:
    transcript = fed(b"one\033]" + b"x" * 300_000, 16_384)
    assert (transcript.text(), transcript.held_bytes) == ("one", 0)

    transcript.feed(b"more\r\n" * 1000 + b"\033[31mtwo")
    assert transcript.text() == "onetwo"


@pytest.mark.parametrize("sequence", [b"\033[" + b"1;" * 9000 + b"A", b"\033" + b"(" * 9000 + b"0"])
def test_sequence_that_is_too_long_does_nothing(sequence: bytes) -> None:
    data = b"one\r\n" + sequence + b"two\r\n"

    assert fed(data, len(data)).text() == "one\ntwo\n"
    assert fed(data, 1000).text() == "one\ntwo\n"


# Rows, columns, and the screen as tmux 3.3 shows it.
SMALL_SCREENS = [
    (1, 10, b"one\r\ntwo\r\nthree\r\n!", "!"),
    (1, 10, b"one\r\ntwo\r\nthree", "three"),
    (1, 10, b"one\r\n\033[2J!", "!"),
    (1, 10, b"one\r\ntwo\033[2J!", "   !"),
    (1, 2, b"hello\033[L!", " !"),
    (3, 2, b"hello\033[A\033[9L\033[9B!", "he\n\n !"),
    (3, 4, b"a\r\nb\r\nc\033[2;1H\033[2L!", "a\n!"),
    (3, 4, b"a\r\nb\r\nc\033[2L!", "a\nb\n !"),
    (3, 4, b"a\r\nb\r\nc\033[2;1H\033[9M!", "a\n!"),
    (3, 4, b"0\r\na\r\nb\r\nc\033[2;1H\033[2M!", "a\n!"),
    # ED 3 erases the history only, and EL knows no 3.
    (2, 4, b"abcd\033[3J\033[3K", "abcd"),
    (2, 4, b"abcd\033[9J\033[9K", "abcd"),
    # A scroll region of one row, or of none, is ignored.
    (1, 4, b"a\033[r!", "a!"),
    (3, 4, b"a\033[5r!\033[2;2r!\033[3;2r!", "a!!!"),
]


@pytest.mark.parametrize(("rows", "columns", "data", "screen"), SMALL_SCREENS)
def test_small_screen_reads_as_tmux_shows_it(
    rows: int, columns: int, data: bytes, screen: str
) -> None:
    transcript = Transcript(columns, rows)
    transcript.feed(data)

    assert "\n".join(transcript.rows()) == screen


# Control characters and sequences that change the screen, with few and many rows or columns.
CONTROLS = [
    *(b"\n", b"\r\n", b"\r", b"\b", b"\t", b"\033D", b"\033E", b"\033M", b"\0337", b"\0338"),
    *(b"\033c", b"\033[?1049h", b"\033[?25;1049l", b"\033[2;3r", b"\033[r", b"\033[2;9H"),
    *(b"\033[%d%c" % (count, final) for count in (0, 1, 2, 3, 9) for final in b"@ABDGHJKLMPXbd"),
]


@example(1, 2, [[b"\r\n", b"\033[2J"]])
@given(
    st.integers(1, 4),
    st.integers(2, 10),
    st.lists(st.lists(st.sampled_from([b"a", b"words", "日".encode(), *CONTROLS])), max_size=3),
)
def test_nothing_is_too_odd_for_a_small_screen(
    rows: int, columns: int, pieces: list[list[bytes]]
) -> None:
    transcript = Transcript(columns, rows)
    for piece in pieces:
        transcript.feed(b"".join(piece))
        transcript.expect_editor()

        assert "\n".join(transcript.rows()).count("\n") < rows
        assert transcript.text() is not None


@example(3, 8, [b"\033[2;5r", b"\033[3;7H", b"words" * 5, b"\0338"], 20)
@example(3, 9, [b"words" * 5, b"\033[2J", b"\n", b"\033[H", b"\033[K", b"\033[?2004h"], 30)
@given(
    st.integers(2, 9),
    st.integers(2, 20),
    st.lists(st.sampled_from([b"a", b"words" * 5, b"\033[?2004h", *CONTROLS]), max_size=40),
    st.integers(1, 30),
)
def test_what_is_drawn_is_told_alike_in_whatever_pieces_it_comes(
    rows: int, columns: int, parts: list[bytes], size: int
) -> None:
    data = b"".join(parts)
    whole, cut = (Transcript(columns, rows, separates_drawing=True) for _ in range(2))
    whole.feed(data)
    for start in range(0, len(data), size):
        cut.feed(data[start : start + size])

    assert cut.take_events() == whole.take_events()
    assert cut.open_lines() == whole.open_lines()
    assert cut.rows() == whole.rows()


@pytest.mark.parametrize("size", [777, 65_536, 1_000_000])
@pytest.mark.parametrize("colour", [b"", b"\033[31m"])
def test_very_long_lines_are_whole_in_a_text_and_told_in_parts(size: int, colour: bytes) -> None:
    line = "".join(f"{number:09d} " for number in range(31_000))
    data = line.encode() + b"\r\nEND\r\n" + b"x\r\n" * 60
    transcript = fed(colour + data, size)

    assert transcript.text() == line + "\nEND\n" + "x\n" * 60
    assert [len(part.text) for part in transcript.take_settled()[:4]] == [
        100_000,
        100_000,
        100_000,
        10_000,
    ]


@given(
    st.integers(0, 400),
    st.sampled_from([b"\033[32mline %d\033[0m\r\n", b"line %d\r\n", b"line %d\t\xc3\xa9\r\n"]),
)
def test_lines_are_settled_once_each_and_in_order(count: int, line: bytes) -> None:
    transcript = Transcript()
    seen: list[Line] = []
    for number in range(count):
        transcript.feed(line % number)
        seen += transcript.take_settled()
    seen += transcript.open_lines()

    expected = [f"line {number}" for number in range(count)]
    assert [found.text.partition("\t")[0] for found in seen if found.text] == expected


@pytest.mark.parametrize(
    "rest",
    [
        b"\xc3",
        b"\xe4\xb8",
        b"\033",
        b"\033[",
        b"\033[1;3",
        b"\033[>5",
        b"\033[2 ",
        b"\033]0;titl",
        b"\r",
    ],
)
def test_what_is_unfinished_is_held_back(rest: bytes) -> None:
    transcript = fed(b"text" + rest, 1000)

    assert (transcript.text(), transcript.held_bytes) == ("text", len(rest))


def test_number_that_python_itself_refuses_is_no_error() -> None:
    assert fed(b"one\033[" + b"9" * 5000 + b"Atwo", 10_000).text() == "onetwo"


def test_text_behind_a_full_screen_program_comes_once_whatever_the_pieces_are() -> None:
    data = b"1001\r\n1002\r\n\033[?1049h\033[Hmenu\033[?1049l$ "
    at = data.index(b"menu")
    first = fed(data[:at], 1000)
    assert first.text().rstrip("\n") == "1001\n1002"

    second = fed(data[:at], 1000)
    second.forget()
    second.feed(data[at:])
    assert second.text() == "$ "


def test_forgotten_text_is_shown_no_more_and_later_text_stands_where_it_stands() -> None:
    transcript = fed(b"old line\r\n$ ", 1000)
    transcript.forget()
    transcript.feed(b"echo hello\r\nhello\r\n")

    assert [line.text for line in transcript.open_lines() if line.text] == ["echo hello", "hello"]


@pytest.mark.parametrize("cut", range(33))
def test_what_a_line_editor_draws_is_known_whatever_the_pieces_are(cut: int) -> None:
    data = b"\033[?2004h$ ls\r\n\033[?2004l\rfile\r\n"
    transcript = fed(data[:cut], 1000)
    transcript.feed(data[cut:])

    assert transcript.open_lines() == [Line("$ ls", is_edited=True), Line("file"), Line("")]


def test_output_after_a_command_as_wide_as_the_terminal_is_a_line_of_its_own() -> None:
    # As bash 5.2 prints it, in 10 columns: it makes the full row wrap, and ends it anew.
    transcript = Transcript(10, 5)
    transcript.feed(b"\033[?2004h$ ")
    transcript.expect_editor()
    transcript.feed(b"12345678 \r\033M" + b"\033[C" * 9 + b"\033[K8\r\n\033[?2004l\routput\r\n")

    assert transcript.open_lines() == [
        Line("$ 12345678", is_edited=True, is_command=True),
        Line("output"),
        Line(""),
    ]


def test_what_a_line_editor_draws_can_be_told_from_output() -> None:
    transcript = fed(b"\033[?2004h$ ", 1000)
    transcript.expect_editor()
    transcript.feed(b"ls\r\n\033[?2004l\rfile\r\n\033[?2004h$ ")

    assert transcript.open_lines() == [
        Line("$ ls", is_edited=True, is_command=True),
        Line("file"),
        Line("$ ", is_edited=True),
    ]


def test_row_that_is_changed_in_several_places_keeps_its_columns() -> None:
    # As a menu's, where the cursor is parked.
    transcript = fed(b"  name    12    mon\r\n> pear    13    tue\r\n  plum    14    wed\033[A", 9)
    transcript.forget()
    assert transcript.text() == ""

    transcript.feed(b"\r  pear\033[11G99\033[17Gfri")
    assert transcript.text() == "  pear    99    fri"


def test_row_that_goes_on_has_only_what_is_new() -> None:
    transcript = fed(b"loading", 9)
    transcript.forget()
    transcript.feed(b"...\033[2C done\r\n")

    assert transcript.text() == "...   done\n"


@pytest.mark.parametrize("forgotten", range(4))
def test_program_that_draws_is_told_alike_whatever_was_forgotten_before(forgotten: int) -> None:
    """Callers share the transcript that a log keeps, which forgets at the cursor of each read."""
    parts = (b"\033[H\033[2J", b"a\r\n", b"\033[1;1H", b"a\r\n")
    whole, other = (Transcript(20, 3, separates_drawing=True) for _ in range(2))
    for number, part in enumerate(parts):
        if number == forgotten:
            other.forget()
        whole.feed(part)
        other.feed(part)
    assert other.is_drawn_on == whole.is_drawn_on
    assert other.rows() == whole.rows()
