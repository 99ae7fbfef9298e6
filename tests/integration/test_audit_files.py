"""The files of the audit: what may be in their place, what is in them, and full disks."""

import contextlib
import json
import os
import pty
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import PATIENCE_S, Gate, in_process, records

from tmux_debug_mcp import audit
from tmux_debug_mcp.audit import AuditLog, DefaultAudit, older
from tmux_debug_mcp.errors import StartError
from tmux_debug_mcp.settings import Settings

# What may be at the path of an audit and is none.
FILE_TYPES = [
    "FIFO",
    "FIFO with a reader",
    "link",
    "link to nothing",
    "link to the audit",
    "directory",
    "socket",
]
FILE_TYPES += ["shell script"]


@contextmanager
def placed(kind: str, path: Path) -> Iterator[str]:
    """Put something at a path for a while, and return what is said of it."""
    with ExitStack() as stack:
        yield _place(kind, path, stack)
    if kind == "directory":
        path.rmdir()
        return
    if kind == "link":
        assert path.read_text() == ""
    if kind == "shell script":
        assert path.read_text() == "export A=1\n"
    path.unlink()


def _place(kind: str, path: Path, stack: ExitStack) -> str:
    if kind.startswith("FIFO"):
        os.mkfifo(path)
        if kind == "FIFO with a reader":
            stack.callback(os.close, os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        return "it is a named pipe"
    if kind.startswith("link"):
        targets = {
            "link": "elsewhere.log",
            "link to nothing": "nothing",
            "link to the audit": "../audit.log.1",
        }
        path.symlink_to(targets[kind])
        if kind == "link":
            (path.parent / "elsewhere.log").touch()
        return "it is a symbolic link"
    if kind == "directory":
        path.mkdir()
        return "it is a directory"
    if kind == "socket":
        # The path of a socket is short, whatever the directory is.
        stack.enter_context(contextlib.chdir(path.parent))
        stack.enter_context(socket.socket(socket.AF_UNIX)).bind(path.name)
        return "it is a socket"
    path.write_text("export A=1\n")
    return "it contains something other than an audit"


@pytest.mark.parametrize("kind", FILE_TYPES)
async def test_call_that_can_not_be_put_on_record_says_that_it_was_made_and_further_ones_are_not(
    settings: Settings, tmp_path: Path, kind: str
) -> None:
    path, moved = tmp_path / "logs" / "audit.log", tmp_path / "audit.log.1"
    async with in_process(settings, AuditLog(path, None)) as tools:
        await tools.blocks("list_panes")
        path.rename(moved)
        with placed(kind, path) as reason:
            made = await tools.error("create_pane", command="cat")
            refused = await tools.error("create_pane", command="cat")
        assert made.startswith(f"The call was made, but the audit can't be written ({reason}).")
        assert refused.startswith(f"Nothing was done: the audit can't be written ({reason})")
        assert len(tools.engine.panes) == 1
        await tools.blocks("list_panes")

    assert [(record["tool"], record["failed"]) for record in records(path)] == [
        ("create_pane", False),
        ("list_panes", False),
    ]
    assert [record["tool"] for record in records(moved)] == ["list_panes"]


@pytest.mark.parametrize("kind", FILE_TYPES)
def test_what_is_no_audit_is_an_error_at_the_start(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "audit.log"
    with placed(kind, path) as reason, pytest.raises(StartError) as raised:
        AuditLog(path, None)

    told = str(raised.value)
    advice = {"shell script": "Give the audit its own file."}
    advice |= dict.fromkeys(
        ("link", "link to nothing", "link to the audit"), "Give the file's own path."
    )
    assert told.startswith(f"The audit can't be opened: {path} {reason.removeprefix('it ')}. ")
    assert told.endswith(advice.get(kind, "Give the path of a regular file."))


@pytest.mark.parametrize("kind", ["FIFO", "link", "file"])
async def test_captures_go_nowhere_else_than_to_their_directory(
    settings: Settings, tmp_path: Path, kind: str
) -> None:
    full, elsewhere = tmp_path / "full", tmp_path / "elsewhere"
    elsewhere.mkdir()
    places: dict[str, Callable[[], None]] = {
        "FIFO": lambda: os.mkfifo(full),
        "link": lambda: full.symlink_to(elsewhere),
        "file": full.touch,
    }
    places[kind]()
    with pytest.raises(StartError, match=r"own path\." if kind == "link" else "Not a directory"):
        AuditLog(None, full)
    full.unlink()

    async with in_process(settings, AuditLog(None, full)) as tools:
        await tools.create("cat")
        full.rmdir()
        places[kind]()
        error = await tools.error("capture_pane", pane_id="debug-1")
        assert error.startswith("The call was made, but its text can't be kept in ")
        full.unlink()
        await tools.blocks("capture_pane", pane_id="debug-1")

    assert list(elsewhere.iterdir()) == []
    assert [file.name for file in full.iterdir()] == ["debug-1-capture-001.txt"]


@pytest.mark.parametrize("keys", ["hunter2 Enter", ["hunter2 Enter", "hunter2 Enter"]])
async def test_secret_that_a_terminal_shows_is_in_no_capture_that_is_kept(
    settings: Settings, tmp_path: Path, keys: str | list[str]
) -> None:
    full = tmp_path / "full"
    async with in_process(settings, AuditLog(None, full)) as tools:
        pane_id = await tools.create("stty -echo; tee /dev/tty", name="hunter")
        answered = await tools.send(pane_id, keys, secret=True, wait_for="^hunter2$")
        assert "hunter2" in answered[1]
        await tools.shows(pane_id, "hunter2\nhunter2")
        await tools.capture(pane_id, view="ansi")
        await tools.capture(pane_id, since=0)

    kept = [file.read_text() for file in full.iterdir()]
    assert not any("hunter2" in text for text in kept)
    assert sum("[secret]" in text for text in kept) >= 4


async def test_short_secret_is_no_part_of_words_in_captures_that_are_kept(
    settings: Settings, tmp_path: Path
) -> None:
    full = tmp_path / "full"
    async with in_process(settings, AuditLog(None, full)) as tools:
        command = "printf 'many keys\\n'; stty -echo; tee /dev/tty"
        pane_id = await tools.create(command, wait_for="keys")
        await tools.send(pane_id, "y Enter", secret=True, wait_for="^y$")
        await tools.shows(pane_id, "many keys\ny\ny")

    kept = [file.read_text() for file in full.iterdir()]
    assert any("many keys\n[secret]\n[secret]" in text for text in kept)
    assert not any("man[secret]" in text for text in kept)


async def test_secret_that_begins_with_an_earlier_one_is_in_no_capture_that_is_kept(
    settings: Settings, tmp_path: Path
) -> None:
    full = tmp_path / "full"
    async with in_process(settings, AuditLog(None, full)) as tools:
        pane_id = await tools.create("stty -echo; tee /dev/tty")
        for secret in ("admin", "admin-Tr0ub4dor"):
            await tools.send(pane_id, f"{secret} Enter", secret=True, wait_for=f"^{secret}$")
        await tools.shows(pane_id, "Tr0ub4dor\nadmin-Tr0ub4dor")

    kept = [file.read_text() for file in full.iterdir()]
    assert any("[secret]" in text for text in kept)
    assert not any("Tr0ub4dor" in text for text in kept)


async def test_secrets_that_overlap_are_in_no_part_in_captures_that_are_kept(
    settings: Settings, tmp_path: Path
) -> None:
    full = tmp_path / "full"
    async with in_process(settings, AuditLog(None, full)) as tools:
        pane_id = await tools.create("stty -echo; cat >/dev/null; stty echo; exec cat")
        for secret in ("left-middle", "middle-right", "secret", "iddl"):
            await tools.send(pane_id, f"{secret} Enter", secret=True, timeout_s=PATIENCE_S)
        await tools.send(pane_id, "C-d")
        shown = "a left-middle-right b left-middle c iddl d secret e"
        await tools.send(pane_id, f"{shown} Enter", wait_for=f"^{shown}$")

    kept = [file.read_text() for file in full.iterdir()]
    assert any("a [secret] b [secret] c [secret] d [secret] e" in text for text in kept)
    assert not any(part in text for text in kept for part in ("left", "iddl", "right"))


async def test_secret_whose_blank_was_at_the_end_of_a_row_is_in_no_capture_that_is_kept(
    settings: Settings, tmp_path: Path
) -> None:
    full, gate = tmp_path / "full", Gate(tmp_path / "gate")
    draw = r"printf '\033[?1049h\033[Hopen\nsesame\033[9;1Hopen  \033[31msesame'"
    async with in_process(settings, AuditLog(None, full)) as tools:
        pane_id = await tools.create(f"stty -echo; read x; cat {gate}; {draw}; exec sleep 99")
        await tools.send(pane_id, "open sesame Enter", secret=True, timeout_s=PATIENCE_S)
        await gate.open()
        await tools.shows(pane_id, "open\nsesame")
        await tools.capture(pane_id, view="ansi")

    kept = [file.read_text() for file in full.iterdir()]
    assert any("[secret]" in text for text in kept)
    assert not any("sesame" in text for text in kept)


def test_captures_are_numbered_on_without_a_look_at_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = tmp_path / "full"
    full.mkdir()
    for number in (3, 1200):
        (full / f"debug-1-capture-{number:03d}.txt").touch()
    (full / "debug-10-capture-2000.txt").touch()
    one, other = AuditLog(None, full), AuditLog(None, full)
    looks: list[object] = []
    stat = os.stat

    def counted(path: Any, **flags: Any) -> os.stat_result:  # noqa: ANN401  as os.stat takes
        looks.append(path)
        return stat(path, **flags)

    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", None)
        patch.setattr(os, "scandir", None)
        patch.setattr(os, "stat", counted)
        names = [one.capture("debug-1", str(number)) for number in range(1000)]
        looks.clear()
        others = [other.capture(pane_id, "x") for pane_id in ("debug-1", "debug-2")]
    assert names == [f"debug-1-capture-{number}.txt" for number in range(1201, 2201)]
    assert others == ["debug-1-capture-2201.txt", "debug-2-capture-001.txt"]
    assert len(looks) < 40  # though the first server has made a thousand


async def test_nothing_in_the_directory_of_captures_is_written_to_or_waited_for(
    settings: Settings, tmp_path: Path
) -> None:
    full, precious = tmp_path / "full", tmp_path / "precious"
    full.mkdir()
    precious.write_text("text")
    (full / "debug-1-capture-001.txt").symlink_to(precious)
    os.mkfifo(full / "debug-1-capture-002.txt")
    (full / f"debug-1-capture-{'9' * 220}.txt").touch()
    async with in_process(settings, AuditLog(None, full)) as tools:
        await tools.create("cat")
        await tools.blocks("capture_pane", pane_id="debug-1")

    assert precious.read_text() == "text"
    assert (full / "debug-1-capture-003.txt").stat().st_mode & 0o777 == 0o600


def test_links_among_the_directories_of_a_path_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    AuditLog(tmp_path / "link" / "audit.log", tmp_path / "link" / "full").close()

    assert sorted(path.name for path in (tmp_path / "real").iterdir()) == ["audit.log", "full"]


@pytest.mark.parametrize(
    "content",
    [
        "export A=1\n",
        "{\n  echo\n}\n",
        '[{"ts": "x"}]\n',
        "# half a line",
        '"ts"\n',
        "\n\nexport A=1\n",
        '{"ts\n$(reboot)\n',
        "\0\0",
        '{"name": ' + "[" * 200_000,
        "export A=" + "x" * 200_000,
    ],
)
def test_file_that_is_no_audit_is_left_as_it_is(tmp_path: Path, content: str) -> None:
    path = tmp_path / ".bashrc"
    path.write_text(content)

    with pytest.raises(
        StartError, match=r"contains something other than an audit\. Give the audit its own file"
    ):
        AuditLog(path, None)
    assert path.read_text() == content


@pytest.mark.parametrize(
    "content",
    [
        "",
        "\n",
        '{"ts":"2026-01-01T00:00:00.000Z","tool":"list_panes"}\n',
        '{"ts":"2026-01-01T0',
        '{"ts":"2026-01-01T0\n{"ts":"2026-01-01T00:00:00.000Z","tool":"list_panes"}\n',
        '{"t',
        '{"t\n{"ts":"2026-01-01T00:00:00.000Z","tool":"list_panes"}\n',
        '{"server": "another", "tool": "x"}\n',
        '{"ts":"2026-01-01T00:00:00.000Z","keys":"' + "x" * 200_000 + '"}\n',
    ],
)
async def test_audit_of_earlier_servers_is_appended_to(
    settings: Settings, tmp_path: Path, content: str
) -> None:
    path = tmp_path / "audit.log"
    path.write_text(content)
    for _ in range(2):
        async with in_process(settings, AuditLog(path, None)) as tools:
            await tools.blocks("list_panes")

    text = path.read_text()
    assert text.startswith(content)
    assert [
        json.loads(line)["tool"] for line in text.removeprefix(content).splitlines() if line
    ] == ["list_panes"] * 2


def test_devices_are_no_audit() -> None:
    controller, terminal = pty.openpty()
    try:
        for path in ("/dev/full", "/dev/zero", os.ttyname(terminal)):
            with pytest.raises(StartError, match=f"{path} is a device"):
                AuditLog(Path(path), None)
    finally:
        os.close(controller)
        os.close(terminal)


async def test_audit_may_be_the_null_device(settings: Settings) -> None:
    async with in_process(settings, AuditLog(Path("/dev/null"), None)) as tools:
        for _ in range(20):
            await tools.blocks("list_panes")


async def test_disk_that_is_full_half_way_leaves_whole_lines_when_there_is_room(
    settings: Settings, tmp_path: Path
) -> None:
    # A limit of file sizes stands in for it: the kernel writes what still fits, then nothing.
    path = tmp_path / "audit.log"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with in_process(settings, AuditLog(path, None)) as tools:
        await tools.blocks("list_panes")
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, hard))
        try:
            made = await tools.error("list_panes")
            refused = await tools.error("list_panes")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert made.startswith("The call was made")
        assert refused.startswith("Nothing was done")
        await tools.blocks("list_panes")

    assert [record["tool"] for record in records(path)] == ["list_panes"] * 3


async def test_file_that_was_moved_away_is_made_anew(settings: Settings, tmp_path: Path) -> None:
    path, moved = tmp_path / "audit.log", tmp_path / "audit.log.1"
    async with in_process(settings, AuditLog(path, None)) as tools:
        await tools.blocks("list_panes")
        path.rename(moved)
        await tools.error("kill_pane", pane_id="x")

    assert [record["tool"] for record in records(moved)] == ["list_panes"]
    assert [record["tool"] for record in records(path)] == ["kill_pane"]


@pytest.mark.parametrize("kind", ["file in the way", "no right"])
def test_audit_that_can_not_be_opened_is_an_error_at_the_start(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "audit.log"
    if kind == "file in the way":
        (tmp_path / "file").touch()
        path = tmp_path / "file" / "audit.log"
    else:
        path = Path("/proc/audit.log")

    with pytest.raises(StartError, match=r"The audit can't be opened: .* Give a writable path\."):
        AuditLog(path, None)
    with pytest.raises(StartError, match="The audit can't be opened"):
        AuditLog(None, Path("/proc/captures"))


async def test_capture_that_can_not_be_kept_says_that_the_call_was_made(
    settings: Settings, tmp_path: Path
) -> None:
    full = tmp_path / "full"
    async with in_process(settings, AuditLog(None, full)) as tools:
        await tools.create("cat")
        full.rmdir()
        full.touch()
        error = await tools.error("capture_pane", pane_id="debug-1")

    assert error.startswith("The call was made, but its text can't be kept in ")


async def test_audit_recovers_when_its_directory_was_in_the_way(
    settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "logs" / "audit.log"
    async with in_process(settings, AuditLog(path, None)) as tools:
        await tools.blocks("list_panes")
        path.parent.rename(tmp_path / "logs.old")
        path.parent.touch()
        assert "The call was made" in await tools.error("list_panes")
        assert "Nothing was done" in await tools.error("list_panes")
        path.parent.unlink()
        await tools.blocks("list_panes")

    assert [record["tool"] for record in records(path)] == ["list_panes"] * 2


async def test_record_after_a_half_written_line_is_a_line_of_its_own(
    settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "audit.log"
    path.write_text('{"ts": "2026-01-01T00:0')
    async with in_process(settings, AuditLog(path, None)) as tools:
        await tools.blocks("list_panes")

    half, whole = path.read_text().splitlines()
    assert half == '{"ts": "2026-01-01T00:0'
    assert json.loads(whole)["tool"] == "list_panes"


def numbers(*paths: Path) -> list[int]:
    """Return the numbers in the records of these files."""
    lines = [line for path in paths for line in path.read_text().splitlines()]
    return [json.loads(line)["number"] for line in lines]


def test_default_audit_is_moved_away_when_it_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MAX_DEFAULT_BYTES", 500)
    path = tmp_path / "a.jsonl"
    logs = [DefaultAudit(path, None), DefaultAudit(path, None)]
    for number in range(40):
        logs[number % 2].record({"ts": "2026-01-30T10:15:46.120Z", "number": number})
    for log in logs:
        log.close()

    # The newest are kept, in order, and none is lost when two servers share the file.
    kept = numbers(older(path), path)
    assert kept == list(range(kept[0], 40))
    assert 500 < older(path).stat().st_size < 600
    assert path.stat().st_size <= 500
    assert sorted(tmp_path.iterdir()) == [path, older(path)]


def test_default_audits_that_are_oldest_give_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MAX_DEFAULTS_BYTES", 100_000)
    for number in range(5):
        (tmp_path / f"{number}.jsonl").write_bytes(b"{}\n" + b" " * 40_000)
        os.utime(tmp_path / f"{number}.jsonl", (number, number))

    DefaultAudit(tmp_path / "new.jsonl", None).close()

    assert sorted(path.name for path in tmp_path.iterdir()) == ["3.jsonl", "4.jsonl", "new.jsonl"]


def test_no_call_fails_because_of_a_default_audit(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    log = DefaultAudit(path, None)
    path.unlink()
    path.mkdir()

    for number in range(3):
        log.flush()
        log.record({"ts": "2026-01-30T10:15:46.120Z", "number": number})
    path.rmdir()
    log.flush()
    log.record({"ts": "2026-01-30T10:15:46.120Z", "number": 3})
    log.close()

    assert numbers(path) == [0, 3]


def test_default_audit_on_a_full_disk_has_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    log = DefaultAudit(path, None)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))  # as above; two records take 90 bytes
    try:
        for number in range(4):
            log.record({"ts": "2026-01-30T10:15:46.120Z", "number": number})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    log.record({"ts": "2026-01-30T10:15:46.120Z", "number": 4})
    log.close()

    assert numbers(path) == [0, 1, 2, 4]
