"""Audits: reading them, what is wanted of them, and the words for calls."""

import itertools
import json
import re
import string
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import with_result

from tmux_debug_mcp.sockets.servers import VerbError
from tmux_debug_mcp.tools.toolset import TOOLSETS, choose
from tmux_debug_mcp.viewing import phrases
from tmux_debug_mcp.viewing.audits import (
    MAX_LINE_BYTES,
    Damage,
    Record,
    RecordParser,
    Result,
    merged,
)
from tmux_debug_mcp.viewing.filters import Filter, PaneNames, time_of, tools_of
from tmux_debug_mcp.viewing.outputs import duration, local_time
from tmux_debug_mcp.viewing.phrases import describe
from tmux_debug_mcp.vt.printable import visible, visible_json

AUDIT = Path("audit.log")
NOW = datetime(2026, 1, 30, 12, 0, tzinfo=UTC)


def record_of(tool: str, path: Path = AUDIT, **fields: Any) -> Record:  # noqa: ANN401
    given = with_result({"ts": "2026-01-30T10:15:46.120Z", "tool": tool, **fields})
    [record] = RecordParser(path).feed(json.dumps(given).encode() + b"\n")
    assert isinstance(record, Record)
    return record


def local(*parts: int) -> datetime:
    """Return a local time."""
    text = "-".join(f"{part:02d}" for part in parts[:3])
    return datetime.fromisoformat(text).astimezone() + timedelta(
        **dict(zip(("hours", "minutes", "seconds"), parts[3:], strict=False))
    )


def read_all(data: bytes) -> list[Record | Damage]:
    parser = RecordParser(AUDIT)
    return [*parser.feed(data), *parser.finish()]


GOOD = b'{"ts":"2026-01-30T10:15:46.120Z","tool":"run","command":"ls"}'


class TestReading:
    def test_record_has_what_was_written(self) -> None:
        record = record_of(
            "send_keys",
            pane_id="debug-1",
            caller="me",
            keys="a",
            duration_ms=1500,
            error="no",
        )

        assert record.ended_at == datetime(2026, 1, 30, 10, 15, 46, 120_000, UTC).timestamp()
        assert record.began_at == record.ended_at - 1.5
        assert (record.pane, record.caller) == ("debug-1", "me")
        assert record.arguments == {"keys": "a"}

    @pytest.mark.parametrize(("words", "failed"), [("exited 3", True), ("at rest", False)])
    def test_result_is_what_the_server_says(self, words: str, *, failed: bool) -> None:
        record = record_of("run", result=words, failed=failed, reason="done", exit_code=0)

        assert record.result == Result(words, is_failure=failed)
        assert Filter(failed_only=True).accepts(record, PaneNames()) is failed

    @pytest.mark.parametrize(
        ("words", "fields"),
        [
            ("", {"result": 7, "failed": "yes"}),
            ("", {"result": None, "failed": 1}),
            ("\\x1b[2J", {"result": "\x1b[2J"}),
        ],
    )
    def test_result_that_no_server_writes(self, words: str, fields: dict[str, Any]) -> None:
        assert record_of("run", **fields).result == Result(words, is_failure=False)

    def test_what_came_out_is_no_argument(self) -> None:
        stopped = record_of("stop_process", window_id="@1", signal="SIGTERM")
        ran = record_of("run", command="a", reason="done", exit_code=3, signal="SIGINT")

        assert describe(stopped) == "stop signal=SIGTERM"
        assert describe(ran) == "run a"

    @pytest.mark.parametrize("duration_ms", [1e16, 1e300, -1, "1", True])
    def test_call_did_not_begin_before_there_were_times(self, duration_ms: object) -> None:
        record = record_of("run", duration_ms=duration_ms)

        assert record.duration_s is None
        assert record.began_at == record.ended_at

    @pytest.mark.parametrize(
        ("directory", "cwd"),
        [("/srv", "/srv/"), ("/", "/"), ("src", "src"), ("", ""), ("", None), ("", 7)],
    )
    def test_directory_of_a_call(self, directory: str, cwd: object) -> None:
        assert record_of("run", cwd=cwd).directory == directory

    def test_panes_of_a_call_are_found_in_the_words_of_every_toolset(self) -> None:
        assert record_of("wait", pane_id=["web", "db"]).pane == "web, db"
        assert record_of("close_tab", window_id="@3").pane == "@3"
        assert record_of("type", session="shop").pane == "shop"
        assert record_of("select_pane", pane_id="%3", target="work:1.0").pane == "%3"
        assert record_of("list_panes").pane == ""

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            (b"junk\n", "is not JSON"),
            (b"\0\0\0\n", "is not JSON"),
            (b'"\xff"\n', "is not JSON"),
            (GOOD[:-3], "is incomplete"),
            (b"[]\n", "is not a record"),
            (b"{}\n", "has no time or no tool"),
            (b'{"ts":"soon","tool":"run"}\n', "has no time or no tool"),
            (b'{"ts":"0001-01-01T00:00Z","tool":"run"}\n', "has no time or no tool"),
            (b'{"ts":"9999-12-31T23:59Z","tool":"run"}\n', "has no time or no tool"),
            (b'{"ts":"2026-01-30T10:15:46.120Z","tool":7}\n', "has no time or no tool"),
            (b'{"x":NaN,"y":"\\ud800"}\n', "is not JSON"),
            (b"[" * 100_000 + b'"\\ud800"\n', "is not JSON"),
        ],
    )
    def test_line_that_is_no_record_is_told_and_the_next_is_read(
        self, line: bytes, reason: str
    ) -> None:
        whole = line if line.endswith(b"\n") else line + b"\n"
        damage, record = read_all(whole + GOOD)

        assert read_all(line) == [Damage(AUDIT, 1, reason)]
        assert isinstance(damage, Damage)
        assert isinstance(record, Record)
        assert record.line == 2

    def test_last_line_without_a_line_feed_is_read(self) -> None:
        assert [type(line) for line in read_all(GOOD + b"\n" + GOOD)] == [Record, Record]
        assert read_all(GOOD + b"\n" + GOOD[:9])[1:] == [Damage(AUDIT, 2, "is incomplete")]

    def test_half_a_surrogate_pair_is_read_as_the_server_writes_it(self) -> None:
        record = record_of("send_keys", keys="\ud800")

        assert record.arguments["keys"] == "\ud800"
        assert describe(record) == "send '\ud800'"

    def test_blank_lines_count_but_are_no_damage(self) -> None:
        [record] = read_all(b"\n  \n\r\n" + GOOD + b"\n\n")
        assert record.line == 4

    @pytest.mark.parametrize("rest", [b"", b"x" * (1 << 20)])
    def test_line_that_is_too_long_is_skipped(self, rest: bytes) -> None:
        long = b"x" * (MAX_LINE_BYTES + 1) + rest
        damage, record = read_all(long + b"\n" + GOOD)

        assert str(damage) == "audit.log, line 1, has more than 8 MiB and is skipped."
        assert record.line == 2
        assert read_all(long) == [damage]

    @given(st.lists(st.integers(0, 300), max_size=9))
    def test_lines_are_the_same_however_they_are_cut(self, cuts: list[int]) -> None:
        data = GOOD + b"\njunk\n\n" + GOOD + b"\r\n" + GOOD + b"\n" + GOOD[:20]
        parser = RecordParser(AUDIT)
        lines: list[Record | Damage] = []
        places = sorted({0, *cuts, len(data)})
        for begin, end in itertools.pairwise(places):
            lines += parser.feed(data[begin:end])
        lines += parser.finish()

        whole = RecordParser(AUDIT)
        assert lines == [*whole.feed(data), *whole.finish()]
        assert [isinstance(line, Record) for line in lines] == [True, False, True, True, False]

    @given(
        st.recursive(
            st.none()
            | st.booleans()
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.integers()
            | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        ),
        st.sampled_from(
            ["caller", "pane_id", "duration_ms", "ok", "error", "keys", "name", "reason", "signal"]
        ),
    )
    def test_fields_may_have_any_type(self, value: object, field: str) -> None:
        for tool in ("create_pane", "send_keys", "unknown"):
            fields: dict[str, Any] = {field: value}
            record = record_of(tool, **fields)
            names = PaneNames()
            names.note(record)
            Filter(panes=("web",), caller="me").accepts(record, names)
            assert visible(describe(record)).isprintable() or record
            assert duration(record.duration_s).isascii()


def test_audits_are_merged_by_time() -> None:
    def lines(path: str, *seconds: int) -> list[Record]:
        return [
            record_of("run", Path(path), ts=f"2026-01-30T10:15:{second:02d}Z") for second in seconds
        ]

    shown = merged([iter(lines("a", 1, 4, 5)), iter(lines("b", 2, 3)), iter(lines("c"))])

    assert [str(line.path) for line in shown] == ["a", "b", "b", "a", "a"]


class TestWords:
    @pytest.mark.parametrize(
        ("phrase", "tool", "arguments"),
        [
            (
                "create web: python3 app.py, until /listening/",
                "create_pane",
                {"command": "python3 app.py", "name": "web", "wait_for": "listening"},
            ),
            (
                "create make, in src, with A, B",
                "create_pane",
                {"command": "make", "cwd": "src", "env": ["A", "B"]},
            ),
            ("send 'hello' Enter", "send_keys", {"keys": "hello Enter"}),
            ("send 'hello' Enter Enter", "send_keys", {"keys": "hello\n\n"}),
            ('send "it\'s"', "send_keys", {"keys": "it's"}),
            ("send Up Up Enter", "send_keys", {"keys": "Up Up Enter"}),
            ("send SIGTERM", "send_keys", {"keys": "SIGTERM"}),
            ("send 'make' Enter, then C-c", "send_keys", {"keys": ["make Enter", "C-c"]}),
            ("send a secret", "send_keys", {"secret": True}),
            ("send 7", "send_keys", {"keys": 7}),
            ("capture last 200 lines", "capture_pane", {"lines": 200}),
            ("capture from 48, for /E\\d/", "capture_pane", {"since": 48, "pattern": "E\\d"}),
            (
                "wait for /ready/, or /error/, at most 5 s",
                "wait",
                {"pattern": "ready", "stop_pattern": "error", "timeout_s": 5},
            ),
            ("run make test", "run", {"command": "make test"}),
            ("kill", "kill_pane", {}),
            ("attach with the keyboard", "attach", {"write": True}),
            ("create tab build", "create_tab", {"name": "build"}),
            ("send 'ls' Enter, target=%1", "send_keys", {"target": "%1", "keys": "ls\n"}),
            (
                "split work:0, one above the other, command=top",
                "split_window",
                {"target": "work:0", "horizontal": True, "command": "top"},
            ),
            ("type 'a b'", "type", {"text": "a b", "session": "s"}),
            ("create session top, cols=80", "createSession", {"command": "top", "cols": 80}),
            ("resize cols=80, rows=24", "resize", {"cols": 80, "rows": 24}),
            ('later frob={"a":1}', "later", {"frob": {"a": 1}}),
        ],
    )
    def test_call_in_words(self, phrase: str, tool: str, arguments: dict[str, Any]) -> None:
        assert describe(record_of(tool, **arguments)) == phrase

    def test_name_of_the_pane_stands_behind_the_verb(self) -> None:
        assert describe(record_of("send_keys", keys="C-c"), "web") == "send web: C-c"
        assert describe(record_of("kill_pane"), "web") == "kill web"
        assert describe(record_of("wait", pattern="a"), "web") == "wait web for /a/"

    def test_directory_is_told_as_it_is_given(self) -> None:
        call = record_of("create_pane", command="make", cwd="/srv/shop", size="80x24")

        assert describe(call) == "create make, in /srv/shop, size=80x24"
        assert describe(call, directory="./src") == "create make, in ./src, size=80x24"
        assert describe(call, directory="") == "create make, size=80x24"
        # What is not a directory is an argument like any other.
        assert describe(record_of("run", command="a", cwd=7), directory="") == "run a, in 7"

    def test_every_tool_is_told_in_words(self) -> None:
        tools = {
            tool.name.removeprefix("tmux_") for name in TOOLSETS for tool in choose(name)[0].tools
        }

        assert all(re.fullmatch("[a-z ]+", describe(record_of(tool))) for tool in tools)
        assert phrases._VERBS.keys() <= tools | {"secret"}


class TestNames:
    def test_pane_is_meant_by_its_id_and_by_its_name(self) -> None:
        names = PaneNames()
        names.note(record_of("create_pane", pane_id="debug-1", name="web"))
        wants = Filter(panes=("web",))

        assert wants.accepts(record_of("kill_pane", pane_id="debug-1"), names)
        assert wants.accepts(record_of("kill_pane", pane_id="web"), names)
        assert wants.accepts(record_of("wait", pane_id=["db", "web"]), names)
        assert not wants.accepts(record_of("kill_pane", pane_id="debug-2"), names)
        assert not wants.accepts(record_of("list_panes"), names)
        # A call that failed has the name, as it was given.
        assert Filter(panes=("debug-1",)).accepts(record_of("send_keys", pane_id="web"), names)
        assert not Filter(panes=("debug-2",)).accepts(record_of("send_keys", pane_id="web"), names)

    def test_names_of_other_audits_count_where_an_audit_has_none(self) -> None:
        names = PaneNames()
        names.note(record_of("create_pane", Path("b"), pane_id="debug-1"))
        names.note(record_of("create_pane", Path("a.1"), pane_id="debug-1", name="web"))

        assert names.of(record_of("run", Path("a")), "debug-1") == "web"
        assert names.of(record_of("run", Path("b")), "debug-1") == ""

    def test_servers_that_share_an_audit_have_panes_of_their_own(self) -> None:
        names = PaneNames()
        names.note(record_of("create_pane", pane_id="debug-1", name="web", run="20260130T101546-1"))
        names.note(record_of("create_pane", pane_id="debug-1", name="db", run="20260130T101546-2"))

        assert names.of(record_of("run", run="20260130T101546-1"), "debug-1") == "web"
        assert names.of(record_of("run", run="20260130T101546-2"), "debug-1") == "db"
        assert names.of(record_of("run", run="20260130T101546-3"), "debug-1") == ""

    def test_name_goes_to_the_newest_pane_and_not_to_one_that_failed(self) -> None:
        names = PaneNames()
        names.note(record_of("create_pane", pane_id="debug-1", name="web"))
        names.note(record_of("create_pane", pane_id="debug-1", name="db"))
        names.note(
            record_of(
                "create_pane",
                pane_id="debug-1",
                name="no",
                error="no",
            )
        )

        assert names.of(record_of("run"), "debug-1") == "db"


class TestFilters:
    def test_each_filter_takes_some_calls_away(self) -> None:
        line = record_of(
            "run",
            pane_id="debug-1",
            caller="bash (pid 4711)",
            error="no",
        )
        names = PaneNames()

        for accepts in (
            Filter(),
            Filter(failed_only=True, caller="bash", tools=frozenset({"run"})),
            Filter(since=line.ended_at, panes=("debug-2", "debug-1")),
        ):
            assert accepts.accepts(line, names)
        for rejects in (
            Filter(tools=frozenset({"wait"})),
            Filter(caller="zsh"),
            Filter(panes=("debug-2",)),
            Filter(since=line.ended_at + 0.001),
        ):
            assert not rejects.accepts(line, names)
        assert not Filter(failed_only=True).accepts(record_of("run"), names)

    def test_tools_may_be_verbs_or_names_of_any_toolset(self) -> None:
        assert tools_of(["tmux_run", "send"]) == {"run", "send", "send_keys"}
        assert tools_of(["kill"]) == {"kill", "kill_pane"}
        assert tools_of([]) == frozenset()

    @pytest.mark.parametrize(
        ("word", "expected"),
        [
            ("10m", "2026-01-30T11:50:00Z"),
            ("90s ago", "2026-01-30T11:58:30Z"),
            ("1.5h", "2026-01-30T10:30:00Z"),
            ("1d", "2026-01-29T12:00:00Z"),
            ("2026-01-30T10:15:46.5+02:00", "2026-01-30T08:15:46.500Z"),
            ("2026-01-30 10:15Z", "2026-01-30T10:15Z"),
        ],
    )
    def test_times(self, word: str, expected: str) -> None:
        assert time_of(word, NOW) == datetime.fromisoformat(expected).timestamp()

    def test_times_without_a_zone_are_local(self) -> None:
        now = local(2026, 1, 30, 12, 0)

        assert time_of("2026-01-30T10:15", now) == local(2026, 1, 30, 10, 15).timestamp()
        assert time_of("2026-01-30", now) == local(2026, 1, 30).timestamp()
        assert time_of("10:15", now) == local(2026, 1, 30, 10, 15).timestamp()
        assert time_of("10:15:30", now) == local(2026, 1, 30, 10, 15, 30).timestamp()

    def test_time_of_day_that_has_not_come_yet_was_yesterday(self) -> None:
        now = local(2026, 1, 30, 12, 0)

        assert time_of("23:00", now) == local(2026, 1, 29, 23, 0).timestamp()

    @pytest.mark.parametrize("word", ["", "soon", "10", "-5m", "25:00", "10:60", "2026-13-01", "m"])
    def test_word_that_is_no_time_is_refused(self, word: str) -> None:
        with pytest.raises(VerbError, match=r"--since is .* Give one such as"):
            time_of(word, NOW)


class TestShowing:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("plain \\x1b /\\d+/", "plain \\x1b /\\d+/"),
            ("\x1b[2J\a\x9b1m", "\\x1b[2J\\x07\\x9b1m"),
            ("a\nb\tc\rd\0\x7f", "a\\nb\\tc\\rd\\x00\\x7f"),
            ("x\u202ey\u2066z", "x\\u202ey\\u2066z"),
            ("\u200b\ufeff\u2028", "\\u200b\\ufeff\\u2028"),
            ("\ud800\U000e0041", "\\ud800\\U000e0041"),
            ("naïve 漢字\u3000🎉", "naïve 漢字\u3000🎉"),
        ],
    )
    def test_what_is_not_printable_is_shown(self, text: str, shown: str) -> None:
        assert visible(text) == shown

    @given(st.text())
    def test_nothing_that_a_terminal_obeys_is_left(self, text: str) -> None:
        shown = visible(text)

        for character in shown:
            assert character.isprintable() or character.isspace()
            assert character not in string.whitespace.replace(" ", "")
        shown.encode()

    @given(st.dictionaries(st.text(), st.text() | st.integers()))
    def test_json_that_is_shown_means_the_same(self, value: dict[str, object]) -> None:
        shown = visible_json(json.dumps(value, ensure_ascii=False, indent="\t").replace("\n", "\r"))

        assert json.loads(shown) == value
        assert shown.isprintable()

    @pytest.mark.parametrize(
        ("seconds", "shown"),
        [
            (None, ""),
            (0.0019, "2 ms"),
            (0.0994, "99 ms"),
            (0.0996, "0.1 s"),
            (99.94, "99.9 s"),
            (99.96, "1m 40s"),
            (3599.6, "1h 00m"),
            (7320, "2h 02m"),
            (1e300, "1.16e+295 d"),
        ],
    )
    def test_durations(self, seconds: float | None, shown: str) -> None:
        assert duration(seconds) == shown

    def test_clock_tells_local_time(self) -> None:
        moment = local(2026, 1, 30, 23, 59, 58)

        assert local_time(moment.timestamp()) == ("2026-01-30", "23:59:58")
        assert local_time(moment.timestamp() + 1.9) == ("2026-01-30", "23:59:59")
        assert local_time(moment.timestamp() + 2) == ("2026-01-31", "00:00:00")
