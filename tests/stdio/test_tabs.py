"""The toolset `tabs` over stdio: the scenarios of spec 002 §6, and what outlives a server."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support import python
from wire import Server, TabsServer

pytestmark = pytest.mark.xdist_group("stdio tabs")

# Prints a numbered line every 2 ms.
TICKER = python("""
import itertools, time
for number in itertools.count():
    print("line", number, flush=True)
    time.sleep(0.002)
""")


@pytest.fixture
def start(launch: Callable[..., Server], tmp_path: Path) -> Callable[[], TabsServer]:
    return lambda: TabsServer(launch("--toolsets", "tabs", XDG_STATE_HOME=str(tmp_path / "state")))


@pytest.fixture(scope="module")
def tabs(launch_shared: Callable[..., Server]) -> TabsServer:
    return TabsServer(launch_shared("--toolsets", "tabs"))


def test_scenario_a_quick_bounded_command_execution(tabs: TabsServer, tmp_path: Path) -> None:
    # create_tab, execute_command, and the log for context: the shortest useful conversation.
    (tmp_path / "a-file").touch()
    tab = tabs.create(cwd=str(tmp_path))
    result = tabs.call("execute_command", window_id=tab, command="ls -la", timeout_ms=5000)

    assert result["output"].startswith("total ")
    assert " a-file\n" in result["output"]
    assert (result["exit_code"], result["timed_out"]) == (0, False)
    assert " a-file" in tabs.call("read_logs_from_tab", window_id=tab)["content"]


def test_scenario_b_start_a_dev_server_and_monitor_logs(tabs: TabsServer) -> None:
    # A server in a tab of its own, its log read again and again, and a graceful end.
    web = tabs.create(name="web")
    server = python(
        "import http.server as h\n"
        "s = h.ThreadingHTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler)\n"
        "print(f'port={s.server_port}', flush=True)\n"
        "try: s.serve_forever()\nexcept KeyboardInterrupt: print('shut' + ' down')"
    )
    assert tabs.call("start_process", window_id=web, command=server) == {"started": True}
    port = tabs.shows(web, "\nport=").rpartition("port=")[2].split()[0]
    client = tabs.create(name="client")
    request = f"curl -s -o /dev/null -w '%{{http_code}}' http://127.0.0.1:{port}/"
    assert tabs.call("execute_command", window_id=client, command=request)["output"] == "200"

    log = tabs.call("read_logs_from_tab", window_id=web, lines=500, strip_ansi=True)
    assert '"GET / HTTP/1.1" 200' in log["content"]
    assert tabs.call("stop_process", window_id=web) == {"success": True}
    assert "shut down" in tabs.shows(web, "shut down")


def test_scenario_c_multi_service_orchestration(tabs: TabsServer) -> None:
    # Two services and a test run beside each other; each log has its own lines alone.
    web, db, tests = (tabs.create(name=name) for name in ("web", "db", "tests"))
    for tab, name in ((web, "web"), (db, "db")):
        service = python(
            f"import time\nwhile True: print('{name}' + '-tick', flush=True); time.sleep(0.01)"
        )
        tabs.call("start_process", window_id=tab, command=service)
    check = python("print('1 passed')")
    result = tabs.call("execute_command", window_id=tests, command=check, timeout_ms=120_000)
    assert (result["output"], result["exit_code"]) == ("1 passed\n", 0)

    assert "db-tick" not in tabs.shows(web, "web-tick")
    assert "web-tick" not in tabs.shows(db, "db-tick")
    listed = tabs.call("list_tabs")["tabs"]
    ours = [row for row in listed if row["window_id"] in (web, db, tests)]
    assert [(row["name"], row["active"]) for row in ours] == [
        ("web", False),
        ("db", False),
        ("tests", True),
    ]
    for tab in (web, db):
        tabs.call("stop_process", window_id=tab)


def test_scenario_d_investigate_a_failure(tabs: TabsServer, tmp_path: Path) -> None:
    # Far back in the log, then a search in a file, from the same tab.
    (tmp_path / "app.log").write_text("info: up\nERROR: no such table\ninfo: down\n")
    tab = tabs.create(cwd=str(tmp_path))
    tabs.call("execute_command", window_id=tab, command="seq -f 'step %g' 1 3000; false")
    history = tabs.call("read_logs_from_tab", window_id=tab, lines=2000, strip_ansi=True)
    assert history["returned_lines"] == 2000
    assert history["truncated"]
    assert "\nstep 1003\n" in history["content"]

    found = tabs.call(
        "execute_command", window_id=tab, command="grep -i error app.log", timeout_ms=10_000
    )
    assert (found["output"], found["exit_code"]) == ("ERROR: no such table\n", 0)


def test_logs_are_read_and_streamed_on_by_the_next_server(
    start: Callable[[], TabsServer], tmp_path: Path
) -> None:
    # The next one lists the tab as exited and reads on at its offset, although this one is killed.
    first = start()
    tab = first.create(name="long job")
    first.call("execute_command", window_id=tab, command="seq 1 1000; echo é")
    first.call("start_process", window_id=tab, command=TICKER)
    first.shows(tab, "line 30")
    chunk = first.call("stream_logs_from_tab", window_id=tab, max_bytes=1000)
    # Kept without being asked, so in a place that users know how to find and clear.
    [run] = (tmp_path / "state" / "tmux-debug-mcp" / "logs").iterdir()
    assert {path.name for path in run.iterdir()} == {
        "index.jsonl",
        "debug-1.log",
        "debug-1.timing",
    }
    assert first.call("list_tabs")["log_dir"] == str(run)
    first.server.process.kill()
    first.server.finish()

    second = start()
    [row] = second.call("list_tabs")["tabs"]
    assert (row["name"], row["active"], row["status"]) == ("long job", False, "exited")
    assert row["window_id"].endswith(f"/{tab}")
    again = second.call("stream_logs_from_tab", window_id=row["window_id"], max_bytes=1000)
    assert again == chunk
    at, text, is_end = chunk["next_byte"], chunk["chunk"], False
    while not is_end:
        chunk = second.call("stream_logs_from_tab", window_id=row["window_id"], from_byte=at)
        at, text, is_end = chunk["next_byte"], text + chunk["chunk"], chunk["eof"]
    assert "\r\n1000\r\né\r\n" in text
    assert "line 30\r\n" in text
    last = second.call("read_logs_from_tab", window_id=row["window_id"], lines=3, strip_ansi=True)
    assert last["content"].startswith("line ")
    assert last["truncated"]
    error = second.server.call_tool("execute_command", window_id=row["window_id"], command="true")
    assert error["isError"]
