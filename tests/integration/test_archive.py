"""Kept logs do not grow for ever: the oldest runs go."""

import os
from pathlib import Path

import orjson
import pytest
from toolsets import open_tabs

from tmux_debug_mcp.errors import PaneNotFoundError, StorageError
from tmux_debug_mcp.linux import files
from tmux_debug_mcp.logs import archive
from tmux_debug_mcp.logs.archive import Archive, IndexEntry
from tmux_debug_mcp.logs.log import nonce_digest
from tmux_debug_mcp.settings import Settings

MARK = "0" * 16


def make_run(directory: Path, number: int, size: int = 0) -> Path:
    run = directory / f"20260101T{number:06d}-4711"
    run.mkdir(parents=True)
    (run / "index.jsonl").write_text("")
    (run / "debug-1.log").write_bytes(b"x" * size)
    return run


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_runs_beyond_the_number_are_removed_the_oldest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_SERVER_RUNS", 4)
    made = [make_run(tmp_path, number) for number in range(6)]
    (tmp_path / "notes").mkdir()
    (tmp_path / "20260101T000000").write_text("not a run")
    new = Archive(tmp_path)
    assert len(names(tmp_path)) == 8  # a server that makes no pane removes nothing
    new.new_log("debug-1", "0" * 16).close()

    assert names(tmp_path) == {run.name for run in made[3:]} | {new.run, "notes", "20260101T000000"}


def test_runs_beyond_the_size_are_removed_the_oldest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_KEPT_BYTES", 100_000)
    made = [make_run(tmp_path, number, size=40_000) for number in range(5)]
    new = Archive(tmp_path)
    new.new_log("debug-1", "0" * 16).close()

    assert names(tmp_path) == {run.name for run in made[3:]} | {new.run}


def test_run_of_a_server_that_lives_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_SERVER_RUNS", 1)
    alive, dead = make_run(tmp_path, 1), make_run(tmp_path, 2)
    held = files.hold(str(alive))
    new = Archive(tmp_path)
    new.new_log("debug-1", "0" * 16).close()
    os.close(held)

    assert names(tmp_path) == {alive.name, new.run}
    assert not dead.exists()


def entry(directory: Path, run: Path, pane_id: str, window: str, name: str) -> None:
    """Put a pane into the index of a run, with a log that has its id."""
    facts = {
        "id": pane_id,
        "window": window,
        "name": name,
        "command": "x",
        "mark": MARK,
        "columns": 80,
        "rows": 24,
    }
    with (directory / run / "index.jsonl").open("ab") as file:
        file.write(orjson.dumps(facts | {"started_at": 1.0}) + b"\n")
    (directory / run / f"{pane_id}.log").write_text(pane_id)


def test_pane_is_found_by_id_and_window_before_names_and_then_the_last_of_a_name(
    tmp_path: Path,
) -> None:
    run = make_run(tmp_path, 1)
    for pane_id, window, name in (
        ("debug-1", "@1", "a/b"),
        ("debug-2", "@2", "@1"),
        ("debug-3", "@3", "a/b"),
    ):
        entry(tmp_path, run, pane_id, window, name)
    archive_here = Archive(tmp_path)

    for target, pane_id in (
        ("@1", "debug-1"),
        ("debug-1", "debug-1"),
        ("a/b", "debug-3"),
        ("@3", "debug-3"),
    ):
        pane = archive_here.find(f"{run.name}/{target}")
        assert pane.log.read(0, 99) == pane_id.encode()
        assert (pane.log.columns, pane.log.rows) == (80, 24)
        pane.log.close()


def test_torn_line_hides_only_itself(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    entry(tmp_path, run, "debug-1", "@1", "one")
    with (run / "index.jsonl").open("ab") as file:
        file.write(b'{"id":"debug-2","win')

    [(name, kept)] = Archive(tmp_path).earlier()
    assert (name, kept.window, kept.name) == (run.name, "@1", "one")


def test_run_of_a_server_that_lives_is_not_listed_as_over(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    entry(tmp_path, run, "debug-1", "@1", "one")
    held = files.hold(str(run))
    assert list(Archive(tmp_path).earlier()) == []
    os.close(held)
    assert len(list(Archive(tmp_path).earlier())) == 1


def test_logs_of_killed_panes_are_removed_where_they_are_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_KEPT_BYTES", 200_000)
    other = make_run(tmp_path, 1, size=60_000)
    here = Archive(tmp_path)
    logs = [here.new_log(f"debug-{number}", MARK) for number in range(6)]
    for log in logs:
        log.path.write_bytes(b"x" * 60_000)
    for log in logs[:5]:
        log.close()

    assert not other.exists()
    # With the timing beside them.
    assert {path.stem for path in here.directory.iterdir()} == {
        f"debug-{number}" for number in (2, 3, 4, 5)
    }
    logs[5].close()


class TestHostileDirectory:
    """Others may have written what is there."""

    def test_link_in_the_place_of_a_run_is_left_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(archive, "MAX_SERVER_RUNS", 1)
        victim, logs = tmp_path / "victim", tmp_path / "logs"
        victim.mkdir()
        (victim / "file").write_text("precious")
        (victim / "index.jsonl").write_text("")
        logs.mkdir()
        (logs / "20260101T000000-1").symlink_to(victim)
        Archive(logs).new_log("debug-1", MARK).close()

        assert (victim / "file").read_text() == "precious"
        assert list(Archive(logs).earlier()) == []

    @pytest.mark.parametrize(
        "facts",
        [
            {"id": "../../victim"},
            {"id": "/etc/victim"},
            {"id": 7},
            {"mark": "(a+)+$"},
            {"mark": 3},
            {"window": "@1 or so"},
            {"window": None},
            {"rows": 1_000_000_000},
            {"columns": -1},
            {"columns": True},
            {"rows": 2.5},
            {"started_at": "now"},
            {"started_at": 1e300},
            {"name": "two\nlines"},
            {"command": ["x"]},
        ],
    )
    def test_line_of_an_index_that_is_not_ours_is_passed_over(
        self, tmp_path: Path, facts: dict[str, object]
    ) -> None:
        (tmp_path / "victim.log").write_text("secret")
        run = make_run(tmp_path / "logs", 1)
        usual = {
            "id": "debug-1",
            "window": "@1",
            "name": "n",
            "command": "x",
            "mark": MARK,
            "columns": 80,
            "rows": 24,
        }
        (run / "index.jsonl").write_bytes(orjson.dumps(usual | {"started_at": 1.0} | facts) + b"\n")
        here = Archive(tmp_path / "logs")

        assert list(here.earlier()) == []
        assert here.free_window() == 0
        for target in ("debug-1", "n", "@1", "../../victim"):
            with pytest.raises(PaneNotFoundError):
                here.find(f"{run.name}/{target}")

    @pytest.mark.parametrize("name", ["index.jsonl", "debug-1.log"])
    @pytest.mark.parametrize("kind", ["pipe", "link", "directory"])
    def test_what_is_no_file_is_not_read(self, tmp_path: Path, name: str, kind: str) -> None:
        (tmp_path / "victim").write_text("secret")
        run = make_run(tmp_path / "logs", 1)
        entry(tmp_path / "logs", run, "debug-1", "@1", "one")
        path = run / name
        path.unlink()
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "link":
            path.symlink_to(tmp_path / "victim")
        else:
            path.mkdir()

        with pytest.raises(PaneNotFoundError):
            Archive(tmp_path / "logs").find(f"{run.name}/debug-1")

    def test_link_in_the_place_of_this_run_is_not_written_through(self, tmp_path: Path) -> None:
        here = Archive(tmp_path / "logs")
        here.new_log("debug-1", MARK).close()
        victim = tmp_path / "victim"
        here.directory.rename(victim)
        here.directory.symlink_to(victim)
        before = sorted(path.name for path in victim.iterdir())

        with pytest.raises(StorageError):
            here.new_log("debug-2", MARK)
        assert sorted(path.name for path in victim.iterdir()) == before

    async def test_mark_of_a_pane_can_not_be_learnt_from_the_index(self, tmp_path: Path) -> None:
        here = Archive(tmp_path)
        mark = "0123456789abcdef"
        log = here.new_log("debug-1", mark)
        log.path.write_bytes(b"out\033\\\033]7777;%s;3\a" % mark.encode())
        pane = IndexEntry(
            id="debug-1",
            window="@1",
            name="n",
            command="x",
            mark=nonce_digest(mark),
            columns=80,
            rows=24,
            started_at=0.0,
        )
        here.record(pane)
        assert mark not in (here.directory / "index.jsonl").read_text()

        found = await Archive(tmp_path).find(f"{here.run}/debug-1").log.find_mark()
        assert found == (3, 3)
        log.close()


async def test_odd_index_of_an_earlier_run_does_not_keep_a_new_one_from_starting(
    settings: Settings, tmp_path: Path
) -> None:
    run = tmp_path / "20260101T000000-1"
    run.mkdir()
    (run / "index.jsonl").write_text('[]\n7\n"x"\n[1,2]\nnull\n{"id":1}\nhalf a li')
    async with open_tabs(settings, Archive(tmp_path)) as tabs:
        assert (await tabs.json("create_tab"))["window_id"] == "@1"
        assert len((await tabs.json("list_tabs"))["tabs"]) == 1


def test_whoever_reads_makes_no_directory(tmp_path: Path) -> None:
    missing = Archive(tmp_path / "logs")

    assert list(missing.earlier()) == []
    assert missing.runs_with("@1") == []
    assert not missing.has("20260101T000001-4711/debug-1")
    assert list(tmp_path.iterdir()) == []
