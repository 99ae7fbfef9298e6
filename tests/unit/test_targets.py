"""Targets mean exactly what is there, or nothing."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmux_debug_mcp.errors import AmbiguousTargetError, TargetNotFoundError
from tmux_debug_mcp.tmux.targets import (
    FIELDS,
    Offsets,
    PaneRow,
    find_pane,
    find_panes,
    find_session,
    panes_format,
    parse,
)

ROW = PaneRow(**dict.fromkeys(FIELDS, "0"))


def pane(session: str, window: str, pane: str, **more: str) -> PaneRow:
    """Make a row of `id name`, `index id name` and `index id`; a star marks what is active."""
    session_id, session_name = session.split(" ")
    window_index, window_id, window_name = window.rstrip("*").split(" ", 2)
    pane_index, pane_id = pane.rstrip("*").split(" ")
    fields = {
        "session_id": session_id,
        "session_name": session_name,
        "pane_index": pane_index,
        "pane_id": pane_id,
    }
    fields |= {"window_index": window_index, "window_id": window_id, "window_name": window_name}
    fields |= {
        "window_active": str(int(window.endswith("*"))),
        "pane_active": str(int(pane.endswith("*"))),
    }
    return replace(ROW, **fields | more)


ROWS = [
    pane("$0 main", "0 @0 sh", "0 %0*"),
    pane("$0 main", "1 @1 logs*", "0 %1"),
    pane("$0 main", "1 @1 logs*", "1 %2*"),
    pane("$1 mai", "0 @2 v1.2*", "0 %10*"),
    pane("$1 mai", "7 @3 twin", "0 %11*"),
    pane("$1 mai", "8 @4 twin", "0 %12*"),
    pane("$1 mai", "9 @5 7", "0 %13*"),
    pane("$2 0", "0 @6 x:y*", "0 %14*"),
    pane("$3 a.b:c", "0 @7 w*", "0 %15*"),
    pane("$4 $0", "0 @8 @0*", "0 %16*"),
    pane("$5 $9", "0 @20 w*", "0 %17*"),
    pane("$6 linked", "0 @1 logs", "0 %1"),
    pane("$6 linked", "0 @1 logs", "1 %2*"),
    pane("$6 linked", "5 @1 logs*", "0 %1"),
    pane("$6 linked", "5 @1 logs*", "1 %2*"),
]


@pytest.mark.parametrize(
    ("target", "pane_id"),
    [
        ("%1", "%1"), ("%10", "%10"), ("@1", "%2"), ("$0", "%2"), ("main", "%2"), ("mai", "%10"),
        ("=mai", "%10"), ("main:", "%2"), ("main:0", "%0"), ("main:1", "%2"), ("main:logs", "%2"),
        ("main:=logs", "%2"), ("main:@0", "%0"), ("main:0.0", "%0"), ("main:1.0", "%1"),
        ("main:1.1", "%2"), ("main:logs.%1", "%1"), ("@1.0", "%1"), ("mai:v1.2", "%10"),
        ("mai:v1.2.0", "%10"), ("mai:7", "%11"), ("mai:9", "%13"), ("0", "%14"), ("0:0", "%14"),
        ("0:x:y", "%14"), ("$0:1.0", "%1"), ("a.b:c", "%15"), ("a.b:c:", "%15"),
        ("a.b:c:w", "%15"), ("a.b:c:0.0", "%15"), ("=$0", "%16"), ("=$0:0", "%16"),
        ("=$0:=@0", "%16"), ("$4", "%16"), ("=$9", "%17"),
    ],
)  # fmt: skip
def test_target_of_a_pane_means_that_pane(target: str, pane_id: str) -> None:
    assert find_pane(ROWS, target).pane_id == pane_id


@pytest.mark.parametrize(
    "target",
    [
        "ma", "main:2", "main:log", "main:logs.2", "main:1.x", "%3", "@9", "$9", ":0", "", "nobody",
        "main:logs.", "{last}", "main:+1", "@1.5", "%1.0", "main:@2", "$4:@0",
    ],
)  # fmt: skip
def test_what_is_not_there_is_not_found(target: str) -> None:
    with pytest.raises(TargetNotFoundError) as raised:
        find_pane(ROWS, target)
    assert str(raised.value).startswith(f"Target '{target}' not found: ")


@pytest.mark.parametrize(
    ("target", "relative"),
    [
        ("{last}", "{last}"), ("!", "!"), ("+", "+"), ("+1", "+1"), ("-", "-"), ("~", "~"),
        ("=", "="), ("{mouse}", "{mouse}"), ("main:!", "!"), ("main:+1", "+1"), ("main:^", "^"),
        ("main:$", "$"), ("main:{start}", "{start}"), ("main:1.{up-of}", "{up-of}"),
        ("main:1.+", "+"), ("main:1.!", "!"), ("@1.{last}", "{last}"), ("{next}.1", "{next}"),
    ],
)  # fmt: skip
def test_target_that_depends_on_a_client_is_refused_by_name(target: str, relative: str) -> None:
    with pytest.raises(TargetNotFoundError) as raised:
        find_pane(ROWS, target)
    assert str(raised.value) == (
        f"Target '{target}' not found: '{relative}' depends on a tmux client; give a name or an id."
        " Use tmux_list_panes to see all panes."
    )


@pytest.mark.parametrize("target", [":0", ":", ":logs.1", ":!", ".1", ".!"])
def test_target_without_a_session_is_refused_by_name(target: str) -> None:
    with pytest.raises(TargetNotFoundError, match="it names no session, and none is current here"):
        find_pane(ROWS, target)


def test_names_that_look_relative_are_names() -> None:
    rows = [pane("$0 {last}", "0 @0 !*", "0 %0*"), pane("$1 !", "0 @1 +1*", "0 %1*")]
    for target in ("{last}", "{last}:!", "{last}:!.0"):
        assert find_pane(rows, target).pane_id == "%0"
    for target in ("!", "!:+1"):
        assert find_pane(rows, target).pane_id == "%1"


def test_name_of_two_windows_is_ambiguous() -> None:
    with pytest.raises(
        AmbiguousTargetError, match=r"^Target 'mai:twin' matches 2 windows: @3, @4\. Give an id\.$"
    ):
        find_pane(ROWS, "mai:twin")


@pytest.mark.parametrize(
    ("target", "session_id"),
    [("main", "$0"), ("$1", "$1"), ("mai:9", "$1"), ("%11", "$1"), ("@0", "$0")],
)
def test_target_of_a_session_means_that_session(target: str, session_id: str) -> None:
    assert find_session(ROWS, target).session_id == session_id


@pytest.mark.parametrize("target", ["main:2", "main:log", "main:1.7", "$0:nosuch", "nobody:"])
def test_session_of_what_is_not_there_is_not_found(target: str) -> None:
    with pytest.raises(TargetNotFoundError):
        find_session(ROWS, target)


@pytest.mark.parametrize(
    ("target", "panes"),
    [
        ("main", ["%0", "%1", "%2"]), ("$0", ["%0", "%1", "%2"]), ("main:", ["%0", "%1", "%2"]),
        ("=$0", ["%16"]), ("main:1", ["%1", "%2"]), ("@1", ["%1", "%2"]), ("%1", ["%1", "%2"]),
        ("main:0.0", ["%0"]), ("linked:5", ["%1", "%2"]), ("linked:logs", ["%1", "%2"]),
    ],
)  # fmt: skip
def test_target_of_a_session_or_a_window_means_its_panes(target: str, panes: list[str]) -> None:
    assert [row.pane_id for row in find_panes(ROWS, target)] == panes


@given(
    st.lists(st.lists(st.text(max_size=9), min_size=len(FIELDS), max_size=len(FIELDS)), max_size=4)
)
def test_no_text_of_a_field_is_taken_for_another(values: list[list[str]]) -> None:
    separator = "0123456789abcdef"
    ids = {"session_id": "$1", "window_id": "@2", "pane_id": "%3", "pane_current_command": "sh"}
    values = [
        [ids.get(name, value) for name, value in zip(FIELDS, row, strict=True)] for row in values
    ]
    lines = [separator + separator.join(fields) + separator for fields in values]

    assert [list(vars_of(row)) for row in parse("\n".join(lines), separator)] == values


def test_ids_of_a_later_server_come_behind_those_of_an_earlier_one() -> None:
    offsets = Offsets().behind("$1", "@4", "%9").behind("$3", "@2", "%10")
    later = separated(session_id="$0", window_id="@1", pane_id="%1")
    [row] = parse(later, "|", offsets)

    assert (row.session_id, row.window_id, row.pane_id) == ("$4", "@6", "%12")
    assert (row.tmux_session, row.tmux_window, row.tmux_pane) == ("$0", "@1", "%1")


def separated(**fields: str) -> str:
    return "|" + "|".join(fields.get(name, "0") for name in FIELDS) + "|"


def vars_of(row: PaneRow) -> list[str]:
    return [str(getattr(row, field)) for field in FIELDS]


def test_format_asks_for_each_field_once() -> None:
    assert panes_format("|").strip("|").split("|") == [f"#{{{field}}}" for field in FIELDS]
