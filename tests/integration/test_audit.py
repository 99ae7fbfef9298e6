"""The audit misses nothing: what is on record of each call."""

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from nursery import Nursery
from support import RUN, Tools, eventually, in_process, python, records
from wire import Server

from tmux_debug_mcp.audit import AuditLog
from tmux_debug_mcp.logs.archive import Archive
from tmux_debug_mcp.settings import Settings


def plain(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record without what differs from run to run."""
    assert record["run"] == RUN
    assert record.get("cursor", 0) >= 0
    varying = ("ts", "run", "cursor", "duration_ms")
    return {key: value for key, value in record.items() if key not in varying}


async def test_every_call_is_a_record_of_what_was_asked_and_what_came_of_it(
    settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "made" / "too" / "audit.log"
    async with in_process(settings, AuditLog(path, None)) as tools:
        await tools.create(
            "echo héllo; exit 3", name="server", cwd=str(tmp_path), env={"TOKEN": "s3cret"}
        )
        await tools.exited("server")
        await tools.blocks("list_panes")
        await tools.blocks("kill_pane", pane_id="server")
        for name in ("one", "two"):
            await tools.create("exit 3", name=name)
        await tools.blocks("kill_pane", pane_id=["one", "two"])

    *_, last = records(path)
    both = ["debug-2", "debug-3"]
    assert plain(last) == {
        "tool": "kill_pane",
        "pane_id": both,
        "reason": "killed",
        "result": "killed",
        "failed": False,
    }
    created, *captures, listed, killed = records(path)[:-3]
    assert plain(created) == {
        "tool": "create_pane",
        "pane_id": "debug-1",
        "command": "echo héllo; exit 3",
        "name": "server",
        "cwd": str(tmp_path),
        "env": ["TOKEN"],
        "timeout_s": 0,
        "result": "ok",
        "failed": False,
    }
    assert plain(captures[-1]) == {
        "tool": "capture_pane",
        "pane_id": "debug-1",
        "lines": 1,
        "output_bytes": len("héllo".encode()),
        "result": "ok",
        "failed": False,
    }
    assert plain(listed) == {"tool": "list_panes", "result": "ok", "failed": False}
    assert plain(killed) == {
        "tool": "kill_pane",
        "pane_id": "debug-1",
        "reason": "killed",
        "exit_code": 3,
        "result": "killed",
        "failed": False,
    }
    for record in records(path):
        assert record["ts"].endswith("Z")
        assert record["duration_ms"] >= 0
    assert "s3cret" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


async def outcomes(
    settings: Settings, path: Path, toolsets: str, *calls: tuple[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """Make calls in turn; return how each came out, as it is on record."""
    async with in_process(settings, AuditLog(path, None), toolsets) as tools:
        for tool, arguments in calls:
            await tools.blocks(tool, **arguments)
    fields = ("reason", "exit_code", "signal")
    return [
        {field: record[field] for field in fields if field in record} for record in records(path)
    ]


async def test_how_a_call_came_out_is_on_record(settings: Settings, tmp_path: Path) -> None:
    assert await outcomes(
        settings,
        tmp_path / "audit.log",
        "debug",
        ("create_pane", {"command": "exit 3", "wait_for": "never"}),
        ("run", {"command": "exit 4"}),
        ("run", {"command": "kill -SEGV $$"}),
        ("run", {"command": "sleep 99", "timeout_s": 0.2}),
        ("create_pane", {"command": "bash --norc", "name": "shell", "timeout_s": 0}),
        ("run", {"command": "(exit 5)", "pane_id": "shell"}),
        ("wait", {"pane_id": "shell", "pattern": "never", "timeout_s": 0}),
        ("send_keys", {"pane_id": "shell", "keys": "echo b-a-d Enter", "wait_for": "^b-a-d"}),
        ("wait", {"pane_id": "shell", "stop_pattern": "^b-a-d"}),
        ("create_pane", {"command": python("while True: pass"), "timeout_s": 0.1}),
        ("capture_pane", {"pane_id": "debug-1"}),
        ("list_panes", {}),
    ) == [
        {"reason": "exited", "exit_code": 3},
        {"reason": "done", "exit_code": 4},
        {"reason": "done", "exit_code": 139, "signal": "SIGSEGV"},
        {"reason": "timed_out", "exit_code": 130, "signal": "SIGINT"},
        {},
        {"reason": "done", "exit_code": 5},
        {"reason": "timed_out"},
        {"reason": "matched"},
        {"reason": "stopped"},
        {"reason": "busy"},
        {},
        {},
    ]


async def test_how_calls_of_other_toolsets_came_out_is_on_record(
    settings: Settings, tmp_path: Path
) -> None:
    assert await outcomes(
        settings,
        tmp_path / "audit.log",
        "tabs,terminal,tmux",
        ("create_tab", {}),
        ("execute_command", {"window_id": "@1", "command": "(exit 5)"}),
        ("execute_command", {"window_id": "@1", "command": "exit 6"}),
        ("close_tab", {"window_id": "@1"}),
        ("createSession", {"name": "work", "command": "exec sleep 99"}),
        ("closeSession", {"session": "work"}),
        ("tmux_create_session", {"name": "work", "command": "exec sleep 99"}),
        ("tmux_split_window", {"target": "work", "command": "exec sleep 99"}),
        ("tmux_kill", {"target": "%4", "type": "pane"}),
        ("tmux_kill", {"target": "work", "type": "session"}),
    ) == [
        {"reason": "started"},
        {"reason": "done", "exit_code": 5},
        {"reason": "exited", "exit_code": 6},
        {"reason": "killed", "exit_code": 6},
        {"reason": "started"},
        {"reason": "killed", "signal": "SIGHUP"},
        {"reason": "started"},
        {"reason": "started"},
        {"reason": "killed", "signal": "SIGHUP"},
        {"reason": "killed"},
    ]


async def test_wait_that_did_not_get_what_it_was_for_is_a_failure(
    settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "audit.log"
    async with in_process(settings, AuditLog(path, None)) as tools:
        command = "bash -c 'read -rs word'"
        await tools.blocks("create_pane", command=command, wait_for="never printed")
        await tools.create("exit 0", name="ended")
        await tools.exited("ended")
        await tools.blocks("wait", pane_id="ended", port=9)
        await tools.blocks("wait", pane_id="ended", pattern="never printed")

    results = [(line["result"], line["failed"]) for line in records(path)]
    assert results[0] == results[-1] == ("no match", True)
    assert results[-2] == ("ended early", True)


async def test_call_that_fails_is_a_record_with_its_error(
    settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "audit.log"
    async with in_process(settings, AuditLog(path, None)) as tools:
        await tools.create("exit 3", name="server")
        await tools.exited("server")
        await tools.error("send_keys", pane_id="server", keys="x")
        await tools.error("send_keys", pane_id="server", keys="hunter2", secret=True)
        await tools.error("nothing", any="thing")
        await tools.error("capture_pane", pane_id="server", lines="many")

    keys, secret, unknown, wrong = records(path)[-4:]
    assert (keys["tool"], keys["keys"], keys["failed"]) == ("send_keys", "x", True)
    assert keys["error"].startswith("Pane 'server' exited with code 3")
    assert (secret["secret"], "keys" in secret) == (True, False)
    assert (unknown["tool"], unknown["failed"]) == ("nothing", True)
    assert set(plain(unknown)) == {"tool", "result", "failed", "error"}
    assert (
        wrong["error"] == "Parameter 'lines' is \"many\". It must be a whole number of at least 1."
    )
    assert "hunter2" not in path.read_text()


async def test_cancelled_call_is_on_record_with_the_pane_that_it_made(
    settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "audit.log"
    async with in_process(settings, AuditLog(path, None)) as tools:
        with anyio.move_on_after(0.01):
            await tools.create(python("while True: pass"))
        await eventually(lambda: path.read_text() != "")
        assert [pane.id for pane in tools.engine.panes] == ["debug-1"]

    [record] = records(path)
    assert (record["tool"], record["pane_id"], record["failed"]) == (
        "create_pane",
        "debug-1",
        False,
    )


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("send_keys", {"pane_id": "debug-1", "key": "hunter2", "secret": True}),
        ("create_pane", {"command": "cat", "env": ["TOKEN=hunter2"]}),
        ("create_pane", {"command": "cat", "env": "TOKEN=hunter2"}),
        ("create_pane", {"command": "cat", "env": {"TOKEN": ["hunter2"]}}),
        ("create_pane", {"command": "cat", "env": {"TOKEN=hunter2": ""}}),
        ("create_pane", {"command": "cat", "environment": {"TOKEN": "hunter2"}}),
        ("create_pane", {"command": "cat", "name": ["hunter2"], "sercet": True}),
        ("run", {"command": "login hunter2", "secret": True}),
        ("send_keys", {"pane_id": "debug-1", "keys": "hunter2", "is_secret": True}),
        ("send_keys", {"pane_id": "debug-1", "keys": "hunter2", "secret": "yes"}),
        ("send_keys", {"pane_id": "debug-1", "keys": ["hunter2", 7], "secret": 0}),
        ("send_keys", {"pane_id": "hunter2", "keys": "Enter", "secret": True}),
        ("send_keys", {"pane_id": "hunter2", "secret": True}),
        ("send_keys", {"pane_id": "x", "keys": "x", "wait_for": "[hunter2", "secret": True}),
        ("send_keys", {"pane_id": "x", "keys": "x", "size": "hunter2", "secret": True}),
        ("send_keys", {"pane_id": "x", "keys": "x", "timeout_s": "hunter2", "secret": True}),
        ("send_key", {"keys": "hunter2"}),
    ],
)
async def test_secrets_in_the_wrong_place_are_nowhere(
    settings: Settings, tmp_path: Path, tool: str, arguments: dict[str, object]
) -> None:
    path = tmp_path / "audit.log"
    async with in_process(settings, AuditLog(path, None)) as tools:
        error = await tools.error(tool, **arguments)

    assert "hunter2" not in error + path.read_text()
    assert records(path)[0]["failed"]


async def test_refused_call_is_on_record_with_the_arguments_that_its_tool_takes(
    settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "audit.log"
    env = {"TOKEN": "hunter2"}
    async with in_process(settings, AuditLog(path, None)) as tools:
        await tools.error("create_pane", command="cat", env=env, size=80, colour=True)
        await tools.error("send_keys", pane_id="web", keys="x", literal=True, is_secret=True)
        await tools.error("send_keys", pane_id="web", keys="x", secret=None)
        await tools.error("send_keys", pane_id="debug-7", keys="x", secret=True)

    facts = {"tool", "result", "failed", "error"}
    given = [
        {name: fact for name, fact in plain(record).items() if name not in facts}
        for record in records(path)
    ]
    assert given == [
        {"command": "cat", "env": ["TOKEN"]},
        {"pane_id": "web", "literal": True},
        {"pane_id": "web", "keys": "x"},
        {"pane_id": "debug-7", "secret": True},
    ]


async def test_toolsets_that_type_keep_text_off_the_record_of_a_misspelt_call(
    settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "audit.log"
    async with in_process(settings, AuditLog(path, None), "terminal,tmux") as tools:
        await tools.error("type", text="hunter2", hidden=True)
        await tools.error("tmux_send_keys", target="x", keys="hunter2", hidden=True)

    assert "hunter2" not in path.read_text()
    assert [record["failed"] for record in records(path)] == [True, True]


async def test_numbers_and_texts_of_any_size_are_on_record(
    settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "audit.log"
    async with in_process(settings, AuditLog(path, None)) as tools:
        await tools.create("echo x; cat")
        await tools.blocks("capture_pane", pane_id="debug-1", lines=10**30)
        await tools.error("kill_pane", pane_id="z" * 1_000_000)

    assert records(path)[1]["lines"] == 10**30
    assert len(records(path)[2]["error"]) < 300


@pytest.mark.parametrize(
    "secret",
    [
        "Escape hunter2",
        "hunter2 \0",
        "x" * ((1 << 20) + 1),
        [["hunter2"]],
        ["hunter2", ""],
        {"hunter2": 1},
        7,
    ],
)
async def test_secret_that_can_not_be_typed_is_nowhere(
    settings: Settings, tmp_path: Path, secret: object
) -> None:
    path = tmp_path / "audit.log"
    async with in_process(settings, AuditLog(path, None)) as tools:
        await tools.create("cat")
        error = await tools.error("send_keys", pane_id="debug-1", keys=secret, secret=True)

    assert "hunter2" not in error
    assert "hunter2" not in path.read_text()
    assert records(path)[-1]["failed"]


async def test_two_servers_share_a_file_without_a_torn_line(
    settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "audit.log"
    async with (
        in_process(settings, AuditLog(path, None)) as first,
        in_process(settings, AuditLog(path, None)) as second,
    ):

        async def calls(tools: Tools, name: str) -> None:
            for _ in range(100):
                await tools.error("kill_pane", pane_id=name * 3000)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(calls, first, "a")
            tasks.start_soon(calls, second, "b")

    names = [record["pane_id"] for record in records(path)]
    assert sorted(names) == ["a" * 3000] * 100 + ["b" * 3000] * 100


async def test_captures_are_kept_in_files_across_runs_and_never_overwritten(
    settings: Settings, tmp_path: Path
) -> None:
    full = tmp_path / "full"
    for word in ("first", "second"):
        async with in_process(settings, AuditLog(None, full)) as tools:
            await tools.exited(await tools.create(f"echo {word}"))
            await tools.capture("debug-1")
            await tools.blocks("list_panes")

    files = sorted(full.iterdir())
    assert [file.name for file in files] == [
        f"debug-1-capture-{number:03d}.txt" for number in range(1, len(files) + 1)
    ]
    # What was captured before the program had printed is empty.
    assert {file.read_text() for file in files} - {""} == {"first", "second"}
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_servers_in_processes_of_their_own_share_a_file(
    tmp_path: Path, environment: dict[str, str], nursery: Nursery
) -> None:
    path = tmp_path / "audit.log"
    env = environment | {"TMUX_DEBUG_AUDIT": str(path)}
    servers = [
        Server(
            process=nursery.start("tmux-debug-mcp", [], env=env, cwd=tmp_path, has_input=True)
        ).start()
        for _ in range(2)
    ]
    for _ in range(20):  # which a pipe holds
        for server in servers:
            server.send("tools/call", name="tmux_kill_pane", arguments={"pane_id": "x" * 3000})
    for server in servers:
        server.finish()
        assert server.process.returncode == 0

    assert [record["tool"] for record in records(path)] == ["kill_pane"] * 40


def test_server_that_starts_while_another_writes_adds_no_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    long = {"ts": "now", "error": "x" * 200_000}
    audit = AuditLog(path, None)

    def write() -> None:
        for _ in range(300):
            audit.record(long)

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        AuditLog(path, None).close()
    audit.close()

    assert records(path) == [long] * 300


async def test_every_toolset_is_on_record_by_its_own_ids(
    settings: Settings, tmp_path: Path
) -> None:
    path, full = tmp_path / "audit.log", tmp_path / "full"
    archive = Archive(tmp_path / "logs")
    async with in_process(settings, AuditLog(path, full), "tabs,terminal,tmux", archive) as tools:
        await tools.blocks("create_tab", name="web", env={"TOKEN": "s3cret"})
        await tools.blocks("execute_command", window_id="@1", command="echo one")
        await tools.blocks("close_tab", window_id="@1")
        await tools.blocks("read_logs_from_tab", window_id=f"{archive.run}/@1")
        await tools.blocks("createSession", name="../x [*]/y", command="echo two; sleep 99")
        await tools.blocks("getContent", session="../x [*]/y")
        await tools.blocks("tmux_read_pane", target="@2")
        await tools.error("tmux_kill", target="nobody")

    shown = [(record["tool"], record.get("pane_id"), record["failed"]) for record in records(path)]
    run = archive.run
    assert shown == [
        ("create_tab", "@1", False),
        ("execute_command", "@1", False),
        ("close_tab", "@1", False),
        ("read_logs_from_tab", f"{run}/@1", False),
        ("createSession", "../x [*]/y", False),
        ("getContent", "../x [*]/y", False),
        ("read_pane", "%2", False),
        ("kill", None, True),
    ]
    assert "s3cret" not in path.read_text()
    assert {file.name for file in full.iterdir()} == {
        "@1-capture-001.txt",
        f"{run}-@1-capture-001.txt",
        "..-x-----y-capture-001.txt",
        "%2-capture-001.txt",
    }
    assert (full / "@1-capture-001.txt").read_text() == "one\n"
