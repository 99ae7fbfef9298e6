"""The page of audits, as a file: what is in it, and that nothing in it is run."""

import fcntl
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from support import with_result

from tmux_debug_mcp.sockets.servers import VerbError
from tmux_debug_mcp.viewing import page
from tmux_debug_mcp.viewing.audits import Record, RecordParser
from tmux_debug_mcp.viewing.logs import Cast
from tmux_debug_mcp.viewing.page import write

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "<img src=x onerror=alert(1)>",
    "]]>&lt;&amp;",
    "\x1b]0;x\x07\x00\u202eabc\u2028\u2029",
    '"onclick="alert(1)',
]
RUN = "20260130T101546-4711"


def record(**fields: object) -> dict[str, object]:
    facts: dict[str, object] = {
        "ts": "2026-01-30T10:15:46.120Z",
        "run": RUN,
        "tool": "create_pane",
        "pane_id": "debug-1",
        "command": "true",
        "duration_ms": 20.0,
    }
    return with_result(facts | fields)


def lines(*records: dict[str, object]) -> list[Record]:
    data = "".join(json.dumps(one) + "\n" for one in records)
    found = list(RecordParser(Path("a.jsonl")).feed(data.encode()))
    assert all(isinstance(one, Record) for one in found)
    return [one for one in found if isinstance(one, Record)]


class Scripts(HTMLParser):
    """The scripts of a page, by id; those that run have none. Other elements are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.data: dict[str, str] = {}
        self.run: list[str] = []
        self.tags: list[str] = []
        self._open: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "script":
            facts = dict(attrs)
            self._open = facts.get("id") or ""
            assert (facts.get("type") == "application/json") == bool(self._open)

    def handle_data(self, data: str) -> None:
        if self._open:
            self.data[self._open] = data
        elif self._open == "":
            self.run.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._open = None


def written(tmp_path: Path, *records: dict[str, object], **extras: Any) -> Scripts:  # noqa: ANN401
    out = tmp_path / "out.html"
    assert write(lines(*records), out, "audit", **extras) == len(records)
    scripts = Scripts()
    scripts.feed(out.read_text())
    return scripts


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_is_on_record_is_data_and_nothing_else(tmp_path: Path, hostile: str) -> None:
    harmless = written(tmp_path, record())
    captures = tmp_path / "captures"
    captures.mkdir()
    (captures / "c.txt").write_text(hostile)

    scripts = written(
        tmp_path,
        record(command=hostile, name=hostile, caller=hostile, pane_id=hostile, cwd=hostile),
        record(error=hostile, tool=hostile, capture="c.txt"),
        captures=captures,
    )

    assert [tag for tag in scripts.tags if tag != "script"] == [
        tag for tag in harmless.tags if tag != "script"
    ]
    assert len(scripts.run) == 1
    [first, second] = json.loads(scripts.data["part-0"])
    assert (first["command"], second["error"]) == (hostile, hostile)
    assert json.loads(scripts.data["capture-0"]) == hostile
    for text in json.loads(scripts.data["data"])["texts"]:
        assert text.isprintable()
    for directory in json.loads(scripts.data["data"])["directories"]:
        assert directory["path"].isprintable()


def test_title_is_text(tmp_path: Path) -> None:
    write(lines(record()), tmp_path / "out.html", "<b>\x1b[31m")

    text = (tmp_path / "out.html").read_text()
    assert text.count("&lt;b&gt;\\x1b[31m") == 2
    assert "<b>" not in text


@pytest.mark.parametrize("title", ["@STYLE@", "@POLICY@", "@TITLE@"])
def test_title_is_not_taken_for_a_part_of_the_page(tmp_path: Path, title: str) -> None:
    write(lines(record()), tmp_path / "out.html", title)

    assert f"<title>{title}</title>" in (tmp_path / "out.html").read_text()


def test_columns_say_when_where_and_how_calls_ended(tmp_path: Path) -> None:
    data = json.loads(
        written(
            tmp_path,
            record(name="web"),
            record(
                ts="2026-01-30T10:15:47Z",
                tool="capture_pane",
                error="gone",
            ),
            record(ts="2026-01-30T10:15:48Z", tool="list_panes", pane_id=None, duration_ms=None),
            record(ts="2026-01-30T10:15:49Z", tool="kill_pane", pane_id="web"),
            record(ts="2026-01-30T10:15:50Z", run="20260130T101600-2", reason="done", exit_code=3),
        ).data["data"]
    )

    assert data["began"] == [0.0, 880.0, 1900.0, 2880.0, 3880.0]
    assert data["took"] == [20.0, 20.0, -1.0, 20.0, 20.0]
    # The pane by its id and by its name, no pane, and the same id of another run.
    assert data["lane"] == [0, 0, 1, 0, 2]
    assert [lane["name"] for lane in data["lanes"]] == ["web", "server", "debug-1"]
    assert [data["texts"][number] for number in data["error"]] == ["", "gone", "", "", ""]
    assert [data["results"][number] for number in data["result"]] == [
        ["ok", False],
        ["failed", True],
        ["ok", False],
        ["ok", False],
        ["exited 3", True],
    ]


def test_most_common_directory_is_said_once(tmp_path: Path) -> None:
    given = ["/srv/shop", "/srv/shop/src", "/srv/shop/", "", "/opt", "/srv/shopping"]
    calls = [record(cwd=cwd) for cwd in given]
    failed = [record(cwd="/no", error="no")] * 3
    data = json.loads(written(tmp_path, *calls, *failed).data["data"])

    assert data["directory"] == "/srv/shop"
    shown = [data["directories"][number]["shown"] for number in data["where"]]
    assert shown == ["", "./src", "", "", "/opt", "/srv/shopping", *["/no"] * 3]
    # They are searched by the whole path.
    assert data["directories"][data["where"][1]]["path"] == "/srv/shop/src"
    assert {data["texts"][number] for number in data["call"]} == {"create true"}


@pytest.mark.parametrize(("given", "shown"), [([], []), (["/"] * 2 + ["/srv"], ["", "", "/srv"])])
def test_root_and_no_directory_are_said_as_they_are(
    tmp_path: Path, given: list[str], shown: list[str]
) -> None:
    data = json.loads(written(tmp_path, *(record(cwd=cwd) for cwd in given)).data["data"])

    assert data["directory"] == (given[0] if given else "")
    assert [data["directories"][number]["shown"] for number in data["where"]] == shown


def test_records_are_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "_PER_PART", 2)
    scripts = written(tmp_path, *(record(command=str(number)) for number in range(5)))

    parts = [json.loads(scripts.data[f"part-{number}"]) for number in range(3)]
    assert [[one["command"] for one in part] for part in parts] == [["0", "1"], ["2", "3"], ["4"]]


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a\0b", "missing", "link", ""])
def test_captures_are_files_of_the_directory_alone(tmp_path: Path, name: str) -> None:
    captures = tmp_path / "captures"
    captures.mkdir()
    (tmp_path / "secret").write_text("secret")
    (captures / "link").symlink_to(tmp_path / "secret")

    scripts = written(tmp_path, record(capture=name), captures=captures)

    assert json.loads(scripts.data["data"])["captures"] == {}


def test_captures_are_embedded_as_far_as_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "MAX_CAPTURES_BYTES", 10)
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(b"\xff234567" if name == "b" else b"1234")

    scripts = written(
        tmp_path, *(record(capture=name) for name in ("a", "b", "c")), captures=tmp_path
    )

    assert json.loads(scripts.data["data"])["captures"] == {"0": 0, "2": 1}


def cast_of(run: str, pane: str, max_bytes: int) -> Cast | None:
    text = b'{"version":2}\n[0.5,"o","</script>"]\n'
    if (run, pane) != (RUN, "debug-1") or len(text) > max_bytes:
        return None
    return Cast(text, 1769768146.0, [0.5])


def test_recordings_come_with_their_player(tmp_path: Path) -> None:
    scripts = written(tmp_path, record(), record(pane_id="debug-2"), cast_of=cast_of)

    assert json.loads(scripts.data["cast-0"])["text"].endswith('"</script>"]\n')
    lanes = json.loads(scripts.data["data"])["lanes"]
    assert lanes[0] == {"name": "debug-1", "cast": 0, "printed": [1769768146500.0]}
    assert lanes[1] == {"name": "debug-2"}
    assert len(scripts.run) == 2
    assert "AsciinemaPlayer" in scripts.run[0]


def test_page_without_calls_is_a_page(tmp_path: Path) -> None:
    assert json.loads(written(tmp_path).data["data"])["began"] == []


def test_page_that_can_not_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    out = tmp_path / "out.html"
    out.write_text("old")

    def failing() -> list[Record]:
        raise VerbError("It went away.")

    with pytest.raises(VerbError, match="It went away"):
        write((line for line in failing()), out, "x")
    with pytest.raises(VerbError, match=r"can't be written: No such file or directory\. Choose"):
        write([], tmp_path / "missing" / "out.html", "x")

    assert out.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.html"]


def test_pipe_stays_a_pipe_and_gets_the_page(tmp_path: Path) -> None:
    out = tmp_path / "out.html"
    os.mkfifo(out)
    with open(os.open(out, os.O_RDWR | os.O_NONBLOCK), "rb", 0) as reader:
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 1 << 20)  # room for all of it
        write(lines(record()), out, "audit")
        page_bytes = reader.read(1 << 20)

    assert page_bytes
    assert page_bytes.endswith(b"</html>\n")
    assert out.is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["out.html"]


def test_link_stays_a_link_and_its_target_gets_the_page(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere" / "page.html"
    target.parent.mkdir()
    target.write_text("old")
    (tmp_path / "out.html").symlink_to(target)

    written(tmp_path, record())

    assert (tmp_path / "out.html").is_symlink()
    assert target.read_text().endswith("</html>\n")


def test_page_is_for_its_user_alone(tmp_path: Path) -> None:
    written(tmp_path, record())

    assert (tmp_path / "out.html").stat().st_mode & 0o777 == 0o600


def test_page_loads_nothing(tmp_path: Path) -> None:
    written(tmp_path, record())

    text = (tmp_path / "out.html").read_text()
    assert "default-src 'none'" in text
    assert not re.search(r"(?:src|href)\s*=\s*[\"']?(?:https?:)?//", text)
