"""When a log grew: the timing, as values and as the text of a file."""

from itertools import pairwise

import pytest

from tmux_debug_mcp.logs.timing import Resize, Timing


def recorded() -> tuple[Timing, str]:
    timing = Timing(1_700_000_000.25)
    timing.begin(80, 24)
    timing.grow(0.5, 100)
    text = timing.entries()
    timing.resize(1.0, 130, 100, 30)
    timing.grow(2.0, 200)
    return timing, text + timing.entries()


def test_text_is_script1s_advanced_format() -> None:
    assert recorded()[1] == (
        "H 0.000000 START_TIME 2023-11-14 22:13:20.250000+00:00\n"
        "H 0.000000 COLUMNS 80\nH 0.000000 LINES 24\n"
        "O 0.500000 100\nO 0.500000 30\nS 0.000000 SIGWINCH ROWS=30 COLS=100\nO 1.000000 70\n"
    )


def test_text_that_is_read_gives_the_same() -> None:
    timing, text = recorded()
    other = Timing(0.0)

    other.read(text)

    assert other == timing
    assert other.resizes == [Resize(130, 100, 30)]


def test_text_of_a_timing_is_read_as_the_same() -> None:
    timing, text = recorded()
    early, other = Timing(0.0), Timing(1.0)
    early.resize(0.0, 0, 10, 10)
    other.read(early.text())

    assert timing.text() == text
    assert other == early


def test_last_size_is_known_however_often_it_has_changed() -> None:
    timing = Timing(0.0)
    for number in range(3000):
        timing.resize(number, number, 80, number % 50 + 1)

    assert len(timing.resizes) == 1000
    assert timing.resizes[-1] == Resize(2999, 80, 50)
    assert timing.resizes[-2] == Resize(998, 80, 49)


@pytest.mark.parametrize(
    ("at_s", "cursor"), [(0.0, 0), (0.49, 0), (0.5, 100), (1.7, 130), (2.0, 200), (99.0, 200)]
)
def test_cursor_at_a_moment(at_s: float, cursor: int) -> None:
    assert recorded()[0].cursor_at(at_s) == cursor


@pytest.mark.parametrize(
    ("cursor", "at_s"), [(0, 0.5), (1, 0.5), (100, 0.5), (101, 1.0), (200, 2.0), (999, 2.0)]
)
def test_time_of_a_cursor(cursor: int, at_s: float) -> None:
    assert recorded()[0].time_of(cursor) == at_s


def test_nothing_is_noted_where_nothing_was_printed() -> None:
    timing, _ = recorded()

    timing.grow(3.0, 200)
    assert timing.entries() == ""
    assert timing.cursor_at(3.0) == 200


def test_entries_and_notes_of_a_program_that_prints_all_day_become_rarer() -> None:
    timing = Timing(0.0)
    entries = 0
    for number in range(86_400 * 10):
        timing.grow(number / 10, number + 1)
        entries += timing.entries(is_quiet=False).count("\n")

    assert 60_000 < entries < 110_000
    assert 16_000 < len(timing.times) <= 32_768
    assert timing.times == sorted(timing.times)
    # The newest are as fine as they were noted, and none is lost that a moment could be told by.
    assert timing.times[-10_000:] == [number / 10 for number in range(854_000, 864_000)]
    assert max(later - at for at, later in pairwise(timing.times)) < 60
    assert all(after <= at for after, at in zip(timing.afters, timing.times, strict=True))


@pytest.mark.parametrize(
    ("cursor", "span"),
    [(1, (0.9, 1.0)), (10, (0.9, 1.0)), (11, (1.9, 2.0)), (30, (2.0, 3.0)), (99, (2.0, 3.0))],
)
def test_span_of_a_cursor(cursor: int, span: tuple[float, float]) -> None:
    timing = Timing(0.0)
    assert timing.span_of(cursor) == (0.0, 0.0)
    timing.grow(1.0, 10, 0.9)
    timing.grow(2.0, 20, 1.9)
    timing.grow(3.0, 30)

    assert timing.span_of(cursor) == span


@pytest.mark.parametrize(
    "line",
    [
        "",
        "O",
        "O x 5",
        "O -1 5",
        "O nan 5",
        "O inf 5",
        "\x00\x01",
        "O 1e999 7",
        "O 1e308 7",
        "O 100000000000 7",
    ],
)
def test_what_is_no_entry_ends_the_times(line: str) -> None:
    timing = Timing(0.0)

    timing.read(f"O 1.0 5\n{line}\nO 1.0 5\n")

    assert (timing.times, timing.sizes) == ([1.0], [5])


@pytest.mark.parametrize(
    "line",
    [
        "O 0.0 -5",
        "O 0.0 \N{ARABIC-INDIC DIGIT ONE}",
        "O 0.0 99999999999999999999999x",
        "S 0.0 SIGWINCH ROWS=0 COLS=0",
        "S 0.0 SIGWINCH ROWS=9999999999 COLS=1",
        "S 0.0 SIGTERM",
        "H 0.0 COLUMNS many",
        "H 0.0 LINES 0",
        "H 0.0 START_TIME 99999-01-01",
        "H 0.0 START_TIME 9999-12-31 23:59:59+00:00",
        "H 0.0 START_TIME 1969-12-31 23:59:59+00:00",
        "X 0.0 1",
    ],
)
def test_entry_that_makes_no_sense_is_passed_over(line: str) -> None:
    timing = Timing(7.0, 80, 24)

    timing.read(f"{line}\nO 1.0 5\n")

    assert timing == Timing(7.0, 80, 24, [1.0], [5], [0.0])


def test_sizes_that_are_read_are_limited() -> None:
    timing = Timing(0.0)

    timing.read("H 0 COLUMNS 70000\nH 0 LINES 70000\nS 0 SIGWINCH ROWS=70000 COLS=70000\n")

    assert (timing.columns, timing.rows) == (500, 200)
    assert timing.resizes == [Resize(0, 500, 200)]
