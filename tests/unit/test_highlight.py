"""The row of a screen that is highlighted: told from a capture with attributes."""

import pytest
from support import done

from tmux_debug_mcp.vt.captured import highlighted_row

WHIPTAIL = (
    "\033[44m\n\n          \033[30m\033[47m┌────────┤ Menu ├────────┐\033[49m\033[40m \033[44m\n"
    "          \033[30m\033[47m│ Which one?             │\033[40m \033[44m\n"
    "          \033[30m\033[47m│  \033[{0}m1  first  \033[30m\033[47m          │\033[40m \033[44m\n"
    "          \033[30m\033[47m│  \033[{1}m2  second \033[30m\033[47m          │\033[40m \033[44m\n"
    "          \033[30m\033[47m│  \033[{2}m3  third  \033[30m\033[47m          │\033[40m \033[44m\n"
    "          \033[30m\033[47m│    <Ok>    <Cancel>    │\033[40m \033[44m\n"
    "          \033[30m\033[47m└────────────────────────┘\033[40m \033[44m"
)
NORMAL, ACTIVE = "30;47", "37;41"
YES_OR_NO = (
    "\033[44m\n\n          \033[30m\033[47m┌────────────────────────┐\033[40m \033[44m\n"
    "          \033[30m\033[47m│ Are you sure?          │\033[40m \033[44m\n"
    "          \033[30m\033[47m│                        │\033[40m \033[44m\n"
    "          \033[30m\033[47m│ \033[{0}m<Yes>\033[30m\033[47m    "
    "\033[{1}m<No>\033[30m\033[47m   │\033[40m \033[44m\n"
    "          \033[30m\033[47m└────────────────────────┘\033[40m \033[44m"
)
# Bold blue on blue around the box, as in a capture of dialog 1.3.
DIALOG = (
    "\033[1m\033[36m\033[44m\n\n"
    "  \033[37m\033[47m┌───────────────────\033[0m\033[30m\033[47m┐\033[1m\033[36m\033[44m\n"
    "  \033[37m\033[47m│\033[0m\033[30m\033[47m Which          │\033[1m\033[40m  \033[36m\033[44m\n"
    "  │\033[0m\033[30m\033[47m      \033[31ma\033[30m  first  │\033[1m\033[40m  \033[36m\033[44m\n"
    "  │\033[0m\033[30m\033[47m      \033[1m\033[31m\033[44mb\033[0m\033[30m\033[47m  "
    "\033[1m\033[37m\033[44msecond\033[0m\033[30m\033[47m      │\033[1m\033[40m  \033[36m\033[44m\n"
    "  │\033[0m\033[30m\033[47m  \033[1m\033[37m\033[44m< OK >\033[0m\033[30m\033[47m  "
    "<\033[1mCancel\033[0m\033[30m\033[47m> │\033[1m\033[40m\033[36m\033[44m"
)
NANO = (
    "\033[7m  GNU nano 7.2                notes.txt                     Modified  \033[0m\n"
    "one\ntwo\nthree\n"
    "\033[7m^G\033[0m Help      \033[7m^O\033[0m Write Out \033[7m^W\033[0m Where Is\n"
    "\033[7m^X\033[0m Exit      \033[7m^R\033[0m Read File \033[7m^\\\033[0m Replace"
)
HTOP = (
    "  CPU[||||   12.0%]   Tasks: 40\n"
    "\033[30;42m  PID USER      PRI  NI  VIRT Command\033[0m\n"
    "{0}    1 root       20   0  2000 init\033[0m\n"
    "{1}   12 root       20   0  2000 sleep\033[0m\n"
    "   13 root       20   0  2000 cat\n"
    "F1\033[30;46mHelp  \033[0mF2\033[30;46mSetup \033[0mF3\033[30;46mSearch\033[0m"
)


def curses_menu(active: int, attribute: str = "\033[7m") -> str:
    items = ["new", "open", "save", "quit"]
    rows = [
        f"  {attribute if number == active else ''}{item}\033[0m"
        for number, item in enumerate(items)
    ]
    return "\n".join(["Main menu", "", *rows, "", "arrows move, Enter chooses"])


@pytest.mark.parametrize(
    ("capture", "row"),
    [
        (WHIPTAIL.format(ACTIVE, NORMAL, NORMAL), 4),
        (WHIPTAIL.format(NORMAL, ACTIVE, NORMAL), 5),
        (WHIPTAIL.format(NORMAL, NORMAL, ACTIVE), 6),
        (WHIPTAIL.format(NORMAL, NORMAL, NORMAL), None),
        (DIALOG, 5),
        *((curses_menu(number), number + 2) for number in range(4)),
        (curses_menu(2, "\033[48;5;24m"), 4),
        (curses_menu(2, "\033[48;2;10;20;30m"), 4),
        (curses_menu(2, "\033[48:5:24m"), 4),
        (curses_menu(2, "\033[104m"), 4),
        (curses_menu(2, "\033[1;38;5;7m"), None),  # another colour of letters is not a highlight
        (curses_menu(2, "\033[38;2;7;7;7m"), None),
        (curses_menu(2, "\033[7m\033[27m"), None),
        (curses_menu(2, "\033[44m\033[49m"), None),
        (NANO, None),  # its title and its help
        ("title\none\n\033[7mtwo\033[0m\nthree\n\033[7mfour\033[0m\nfive", None),  # several
        ("title\none \033[7mtwo\033[0m three\nfour", None),  # a word in a row
        ("\033[7mtitle\033[0m\none\ntwo", None),
        ("one\ntwo\n\033[7mstatus\033[0m", None),
        ("title\none\n\033[7mtwo\033[0m\n\n\n", 2),  # the last item of a menu
        ("title\none\n\033]8;;http://a.b\033\\\033[7mtwo\033[0m\nthree\nfour", 2),  # a link
        ("title\none\n\033[7mtwo\n\033[0m\n\n", 2),
        ("title\n\033[7mone\ntwo\033[0m\n\n", None),
        ("\033[7mone\ntwo\nthree\033[0m", None),  # all are alike
        ("one\n\033[7m   \033[0m\ntwo", None),  # without letters
        ("plain\ntext\nalone", None),
        ("", None),
    ],
)
def test_one_row_among_others_is_highlighted(capture: str, row: int | None) -> None:
    found = done(highlighted_row(capture.encode(), height=capture.count("\n") + 1))
    assert (found.row if found else None) == row


@pytest.mark.parametrize(
    ("capture", "text"),
    [
        (WHIPTAIL.format(NORMAL, ACTIVE, NORMAL), "2  second"),
        (DIALOG, "b  second"),
        (YES_OR_NO.format(ACTIVE, NORMAL), "<Yes>"),
        (YES_OR_NO.format(NORMAL, ACTIVE), "<No>"),
        (curses_menu(1), "open"),
        # A card of a board with columns.
        ("TODO   DOING\nwrite it   new API\n\033[7mfix it\033[0m    new UI\nadd tests", "fix it"),
        ("TODO   DOING\nfix   new API\nlog    \033[7mthe new UI\033[0m\nadd tests", "the new UI"),
    ],
)  # fmt: skip
def test_what_is_highlighted_is_told_without_the_rest_of_its_row(capture: str, text: str) -> None:
    found = done(highlighted_row(capture.encode(), height=24))
    assert found
    assert found.text.strip() == text


def test_row_that_is_chosen_is_told_beside_a_heading_only_if_it_is_the_only_one() -> None:
    chosen = "\033[30;46m"
    # The heading of htop is highlighted as well, so no row is named rather than a wrong one.
    assert done(highlighted_row(HTOP.format("", chosen).encode(), height=6)) is None
    alone = HTOP.replace("\033[30;42m", "").format("", chosen)
    found = done(highlighted_row(alone.encode(), height=6))
    assert found
    assert found.row == 3
