"""What the server costs, beside the floors of the machine in the same run: `./dev bench`.

Rounds are interleaved, because machines have moods: compare numbers of one run only. The floors are
a server of the bare SDK whose tool does nothing, and a tmux process per call. `figures.py` says
what is compared.
"""

import argparse
import compileall
import gc
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio
import jsonschema  # noqa: F401  loaded by the first call of a process
from stories.scripts import Cost, play, stories
from turns import STREAMS, around_turns, works

import tmux_debug_mcp
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.sockets import servers
from tmux_debug_mcp.turns import pieces
from tmux_debug_mcp.vt.sizes import MAX_COLUMNS, MAX_ROWS
from tmux_debug_mcp.vt.transcript import Transcript

from .cold import ACTIONS, PEERS, TMUX_BASED, measure_cold, name_of, tmux_of
from .curves import measured, picture, table
from .figures import Budget, Figures, MeasuredServer, cpu_ms

BARE = [sys.executable, str(Path(__file__).with_name("bare_server.py"))]
# The time that an agent thinks at least before its first call, in which the server gets ready.
THINKING_S = 0.5
KEYS = 10
PANES = 20
_BUSY_PANES = 10
_PRINTS = """
import time
while True:
    print("GET /orders/4711 200 in 3 ms, 512 bytes", flush=True)
    time.sleep(0.01)
"""
_HISTORY_LINES = 50_000
# An event loop with the terminal and a pipe of its own, which answers each key.
_LOOP = """
import os, select, tty
tty.setraw(0)
print("ready", flush=True)
wake, _ = os.pipe()
while True:
    if select.select([0, wake], [], [], 4)[0]:
        os.write(1, os.read(0, 1))
"""
_TERMINAL_BYTES = 1 << 15
_STREAM_BYTES = 1 << 20


def started(command: list[str] | None = None) -> MeasuredServer:
    """Return a server that has listed its tools."""
    server = MeasuredServer(None, command=command) if command else MeasuredServer(None)
    server.start()
    server.ask("tools/list")
    return server


def memory_mb(pid: int) -> float:
    """Return the memory that is a process's own share, in megabytes."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return (
        next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) / 1024
    )


def switches(pids: list[int]) -> int:
    """Return how often the processes have given up the processor of their own will."""
    name = "voluntary_ctxt_switches:"
    lines = [line for pid in pids for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith(name))


def measure_starts(figures: Figures, rounds: int) -> None:
    """Measure cold starts to the answer of tools/list, and the first calls after it."""
    for _ in range(rounds):
        for name, command in (("bare: cold start", BARE), ("cold start", None)):
            begin = time.perf_counter()
            server = started(command)
            figures.samples[name].append((time.perf_counter() - begin) * 1000)
            figures.cpu[name].append(cpu_ms(server.pid))
            if command is None:
                time.sleep(THINKING_S)
                for call in ("first call", "second call"):
                    figures.time(call, lambda: create(server, call), server.pid)  # noqa: B023
            server.finish()


def create(server: MeasuredServer, name: str) -> None:
    """Create a pane."""
    server.text("create_pane", command="exec cat", name=name, timeout_s=0)


def measure_commands(figures: Figures, rounds: int) -> None:
    """Measure a verb, and a client's start through a detached server, beside an interpreter."""
    verb = [sys.executable, "-c", "from tmux_debug_mcp.command.main import main; main()"]
    with tempfile.TemporaryDirectory(dir="/tmp") as runtime:
        env = os.environ | {"XDG_RUNTIME_DIR": runtime}
        clients: list[MeasuredServer] = []

        def start() -> None:
            clients.append(MeasuredServer(env, "--keep", "60s"))
            clients[-1].start()
            clients[-1].ask("tools/list")

        start()
        ours = [one for one in servers.running(runtime) if one.directory.startswith(runtime)]
        detached = ours[0].pid
        for _ in range(rounds):
            figures.run("interpreter", [sys.executable, "-I", "-S", "-c", "pass"])
            figures.run("verb: list", [*verb, "list", "--text"], detached, env=env)
            before = cpu_ms(detached)
            figures.time("start through a detached server", start)
            used = cpu_ms(clients[-1].pid, detached) - before
            figures.cpu["start through a detached server"].append(used)
            clients.pop().finish()
        subprocess.run([*verb, "stop"], env=env, stdout=subprocess.DEVNULL, check=True)
        for client in clients:
            client.process.communicate()


def measure_calls(
    figures: Figures, rounds: int, idle_s: float, share_s: float, socket: str
) -> None:
    """Measure each call beside the floors."""
    server, bare = started(), started(BARE)
    server.text("create_pane", command="seq 1 10000; exec cat", name="history")
    while "10000" not in server.text("capture_pane", pane_id="history"):
        time.sleep(0.01)
    for number in range(2, PANES + 1):
        server.text("create_pane", command="exec cat", name=f"pane-{number}")
    ours = (server.pid, tmux_of(server.pid))

    def call(name: str, tool: str, /, **arguments: object) -> None:
        figures.time(name, lambda: server.text(tool, **arguments), *ours)

    tmux = ["tmux", "-S", socket]
    server_of_floor = int(
        subprocess.check_output([*tmux, "display-message", "-p", "#{pid}"], text=True)
    )
    # What a create has tmux do at least: start a program, and log its output.
    pipe = ("pipe-pane", "-t", "=:=new", "exec cat >/dev/null")
    floors = {
        "display-message": ["display-message", "-p", "x"],
        "new-window, pipe-pane": ["new-window", "-d", "-n", "new", "exec cat", ";", *pipe],
        "kill-window": ["kill-window", "-t", "=:=new"],
    }
    for _ in range(rounds):
        figures.time(
            "bare: call", lambda: bare.ask("tools/call", name="nothing", arguments={}), bare.pid
        )
        for name, words in floors.items():
            figures.run(f"tmux process: {name}", [*tmux, *words], server_of_floor)
        call("list 20 panes", "list_panes")
        call("send a line", "send_keys", pane_id="pane-2", keys="hello Enter", timeout_s=0)
        call("capture 5 lines", "capture_pane", pane_id="pane-2", lines=5)
        call("capture 100 of 10,000", "capture_pane", pane_id="history")
        call("capture 1,000 of 10,000", "capture_pane", pane_id="history", lines=1000)
        figures.time("8 captures in flight", lambda: eight_captures(server), *ours)
        call("create", "create_pane", command="exec cat", name="new", timeout_s=0)
        call("kill", "kill_pane", pane_id="new")
    figures.samples["bare: memory, MB"].append(memory_mb(bare.pid))
    figures.samples["memory, MB"].append(memory_mb(server.pid))
    [supervisor] = processes.children(server.pid)
    figures.samples["memory of the supervisor, MB"].append(memory_mb(supervisor))
    time.sleep(1)  # what the last calls left to do
    before = switches([server.pid, supervisor])
    time.sleep(idle_s)
    figures.samples["switches while idle"].append(switches([server.pid, supervisor]) - before)
    measure_waits(figures, rounds, share_s, server)
    measure_flood(figures, rounds, share_s, server)
    figures.time("end with 20 panes", server.finish)
    bare.finish()


def measure_growth(figures: Figures, rounds: int, panes: int, log_mb: int) -> None:
    """Measure calls of a server with one pane, and with many, on a full history and a full log."""
    server = started()
    server.text("create_pane", command="bash --norc", name="empty")
    _measure_grown(figures, rounds, server, "empty", "empty")
    fill = f"yes | head -c {log_mb << 20}; seq {_HISTORY_LINES}; exec bash --norc"
    server.call("create_pane", command=fill, name="full", wait_for=f"^{_HISTORY_LINES}", show="no")
    for number in range(panes - 2):
        create(server, f"pane-{number}")
    _measure_grown(figures, rounds, server, "full", "grown")
    server.finish()


def _measure_grown(
    figures: Figures, rounds: int, server: MeasuredServer, pane: str, name: str
) -> None:
    calls: dict[str, tuple[str, dict[str, object]]] = {
        "send": ("send_keys", {"pane_id": pane, "keys": "x", "timeout_s": 0}),
        "capture": ("capture_pane", {"pane_id": pane, "lines": 5}),
        "clear": ("send_keys", {"pane_id": pane, "keys": "C-u"}),
        "run": ("run", {"pane_id": pane, "command": "true"}),
        "create": ("create_pane", {"command": "exec cat", "name": "new", "timeout_s": 0}),
        "kill": ("kill_pane", {"pane_id": "new"}),
    }
    tmux = tmux_of(server.pid)
    for _ in range(rounds):
        for call, (tool, arguments) in calls.items():
            figures.time(
                f"{name}: {call}",
                lambda: server.text(tool, **arguments),  # noqa: B023
                server.pid,
                tmux,
            )


def eight_captures(server: MeasuredServer) -> None:
    """Capture eight times at once."""
    for _ in range(8):
        server.send("tools/call", name="tmux_capture_pane", arguments={"pane_id": "history"})
    for _ in range(8):
        server.read()


def measure_waits(figures: Figures, rounds: int, share_s: float, server: MeasuredServer) -> None:
    """Measure how soon a wait wakes up, runs and reads; and what a wait for a silent pane costs."""
    # It prints the time at which it prints.
    program = (
        "import time\nwhile input():\n time.sleep(0.05)\n print('at', time.monotonic(), flush=True)"
    )
    server.text("create_pane", command=shlex.join([sys.executable, "-c", program]), name="clock")
    server.text("create_pane", command="bash --norc", name="shell")
    loop = shlex.join([sys.executable, "-c", _LOOP])
    server.text("create_pane", command=loop, name="loop", wait_for="ready")
    for _ in range(rounds):
        result = server.call("send_keys", pane_id="clock", keys="go Enter", wait_for=r"^at [\d.]+$")
        woken = time.monotonic()
        printed = float(result["content"][1]["text"].split("at ")[-1].split()[0])
        figures.samples["wake-up of a wait"].append((woken - printed) * 1000)
        figures.time(
            "run true in a shell",
            lambda: server.text("run", command="true", pane_id="shell"),
            server.pid,
        )
        ran = figures.time("run true in its own pane", lambda: server.call("run", command="true"))
        own_pane = ran["_meta"]["pane_id"]
        figures.time("kill of that", partial(server.text, "kill_pane", pane_id=own_pane))
        figures.time(
            "read since, 5 lines", lambda: server.text("capture_pane", pane_id="pane-2", since=0)
        )
        figures.time(
            "read since, 16,000 characters",
            lambda: server.text("capture_pane", pane_id="history", since=0),
        )
    for _ in range(KEYS):
        figures.time(
            "key to an event loop", lambda: server.text("send_keys", pane_id="loop", keys="x")
        )
    server.send(
        "tools/call",
        name="tmux_wait",
        arguments={"pane_id": "pane-2", "pattern": "never", "timeout_s": share_s * 1.5},
    )
    figures.samples["CPU of a wait for a silent pane, %"].append(cpu_share(server.pid, share_s))
    assert "timed out" in str(server.read())


def cpu_share(pid: int, seconds: float) -> float:
    """Return how much of a processor a process uses over some seconds, in per cent."""
    before = cpu_ms(pid)
    time.sleep(seconds)
    return (cpu_ms(pid) - before) / seconds / 10


def measure_flood(figures: Figures, rounds: int, share_s: float, server: MeasuredServer) -> None:
    """Measure a capture beside a pane that prints as fast as it can."""
    server.text("create_pane", command="yes 0123456789012345678901234567890123456789", name="flood")
    for _ in range(rounds):
        figures.time(
            "capture 5 lines beside a flood",
            lambda: server.text("capture_pane", pane_id="pane-2", lines=5),
        )
    figures.samples["CPU beside a flood, %"].append(cpu_share(server.pid, share_s))
    server.send(
        "tools/call",
        name="tmux_wait",
        arguments={"pane_id": "flood", "pattern": "never", "timeout_s": share_s * 1.5},
    )
    figures.samples["CPU of a wait for a flood, %"].append(cpu_share(server.pid, share_s))
    assert "timed out" in str(server.read())
    server.text("kill_pane", pane_id="flood")


def measure_busy(figures: Figures, share_s: float) -> None:
    """Measure what ten panes cost that print 100 lines a second each, and that nobody looks at."""
    server = started()
    for _ in range(_BUSY_PANES):
        command = shlex.join([sys.executable, "-I", "-S", "-c", _PRINTS])
        server.text("create_pane", command=command, timeout_s=0)
    time.sleep(THINKING_S)  # they start
    figures.samples["CPU beside ten busy panes, %"].append(cpu_share(server.pid, share_s))
    server.finish()


def measure_terminals(figures: Figures, pattern: str) -> None:
    """Measure what the largest terminal takes for a turn's work, with output of all kinds.

    Args:
        figures: Gets the processor time of a turn with each kind of output.
        pattern: A regular expression for the names of the kinds to measure, `terminal: colours`.
    """
    for text in (text for name, text in STREAMS.items() if re.search(pattern, f"terminal: {name}")):
        data = eval(text).encode(errors="surrogateescape")  # noqa: S307  a constant of ours
        transcript = Transcript(MAX_COLUMNS, MAX_ROWS)
        turns = list(pieces(data[:_TERMINAL_BYTES]))
        begin = time.thread_time()
        for turn in turns:
            transcript.feed(turn)
            transcript.take_settled()
        took_s = time.thread_time() - begin
        figures.samples["a turn's work for a terminal"].append(took_s * 1000 / len(turns))


def measure_turns(figures: Figures, pattern: str) -> None:
    """Measure the longest turn of the event loop during what is a lot of work.

    Args:
        figures: Gets the processor time of the longest turn of each work, by its kind.
        pattern: A regular expression for the names of the works to measure.
    """
    begun_at = longest_s = 0.0

    def begin() -> None:
        nonlocal begun_at
        begun_at = time.thread_time()

    def end() -> None:
        nonlocal longest_s
        longest_s = max(longest_s, time.thread_time() - begun_at)

    gc.collect()
    gc.freeze()  # as the server does
    for name, work in works(_STREAM_BYTES).items():
        if re.search(pattern, name):
            longest_s = 0.0
            with tempfile.TemporaryDirectory(dir="/tmp") as directory, around_turns(begin, end):
                anyio.run(work, Settings(dict(os.environ), Path(directory)))
            kind = name.partition(":")[0]
            figures.samples[f"longest turn: {kind}"].append(longest_s * 1000)


def budgets(figures: Figures, peers: Sequence[str]) -> list[Budget]:
    """Return the promises of the design, with the figures of this run."""
    cpu, quick = figures.median_cpu, figures.quick
    bare, interpreter = cpu("bare: call"), cpu("interpreter")
    tmux = cpu("tmux process: display-message")
    calls = ("send a line", "list 20 panes", "capture 5 lines")
    first = cpu("first call") - cpu("second call")
    run = quick("run true in a shell") - quick("bare: call")
    detached = cpu("start through a detached server") / interpreter
    flood = quick("capture 5 lines beside a flood") / quick("capture 5 lines")
    turns = figures.samples["a turn's work for a terminal"]
    worsts = [max(turns)] if turns else []  # `--work` may leave all out
    best = {
        action: min(cpu(name_of(action, peer)) for peer in peers) for action in ACTIONS if peers
    }
    return [
        Budget("cold start / bare", cpu("cold start") / cpu("bare: cold start"), 1.10, "×"),
        Budget("first call − second call", first, 10, "ms"),
        Budget(
            "memory − bare",
            figures.median("memory, MB") - figures.median("bare: memory, MB"),
            12,
            "MB",
        ),
        Budget("memory of the supervisor", figures.median("memory of the supervisor, MB"), 7, "MB"),
        *(Budget(f"{name} − bare call", cpu(name) - bare, 1.0, "ms") for name in calls),
        *(Budget(f"{name} / tmux process", cpu(name) / tmux, 1.0, "×") for name in calls),
        Budget("run in a shell − bare call", run, 5, "ms"),
        Budget("create / tmux process", cpu("create") / tmux, 2.7, "×"),
        Budget("kill / tmux process", cpu("kill") / tmux, 2.0, "×"),
        *(
            Budget(
                f"{call} with many panes and lines / with few",
                cpu(f"grown: {call}") / cpu(f"empty: {call}"),
                2.0,
                "×",
            )
            for call in ("send", "capture", "run", "create", "kill")
        ),
        *(
            Budget(f"cold {action} / best peer", cpu(name_of(action)) / ms, 1.0, "×")
            for action, ms in best.items()
        ),
        Budget("verb / interpreter", cpu("verb: list") / interpreter, 5, "×"),
        Budget("start through a detached server / interpreter", detached, 5, "×"),
        Budget("capture beside a flood / quiet", flood, 5, "×"),
        Budget("key to an event loop", quick("key to an event loop"), 30, "ms"),
        Budget("wake-up of a wait", figures.median("wake-up of a wait"), 5, "ms"),
        Budget(
            "CPU beside ten busy panes", figures.median("CPU beside ten busy panes, %"), 1.0, "%"
        ),
        Budget("voluntary switches while idle", figures.median("switches while idle"), 0, ""),
        *(Budget("a turn's work for a terminal, at worst", worst, 16, "ms") for worst in worsts),
        *(
            Budget(name, max(samples), 50, "ms")
            for name, samples in figures.samples.items()
            if name.startswith("longest turn: ")
        ),
    ]


def measure_stories() -> dict[str, Cost]:
    """Return what the stories cost, each with a server of its own."""
    costs = {}
    for name, story in stories().items():
        server = MeasuredServer(None).start()
        costs[name] = play(server, story)
        server.finish()
    return costs


def show(
    figures: Figures, held: list[Budget], costs: Mapping[str, Cost], missing: Sequence[str]
) -> None:
    """Print tables for people."""
    print(f"{'':37}{'median':>10}{'min':>10}{'max':>10}{'cpu':>10}{'n':>6}")
    for name, samples in figures.samples.items():
        row = (statistics.median(samples), min(samples), max(samples))
        cpu = f"{figures.median_cpu(name):10.2f}" if name in figures.cpu else " " * 10
        print(f"{name:37}" + "".join(f"{value:10.2f}" for value in row) + f"{cpu}{len(samples):6}")
    print(f"\n{'budget':48}{'figure':>10}{'at most':>10}")
    for budget in held:
        word = "held" if budget.is_held else "MISSED"
        print(f"{budget.name:48}{budget.figure:10.2f}{budget.most:10.2f} {budget.unit:3}{word}")
    for peer in missing:
        print(f"{f'cold calls / {peer}':48}not measured: give its command by --peer")
    print(f"\n{'story':48}{'calls':>10}{'bytes':>10}")
    for name, cost in costs.items():
        print(f"{name:48}{cost.calls:10}{cost.bytes:10}")


def peer(text: str) -> tuple[str, list[str]]:
    """Return a peer's name and command, given NAME=COMMAND."""
    name, _, command = text.partition("=")
    if name not in PEERS:
        raise argparse.ArgumentTypeError(f"{name}: not one of {', '.join(PEERS)}")
    return name, shlex.split(command)


def main() -> int:
    """Measure; return 1 when a budget is missed."""
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print samples and budgets as JSON")
    parser.add_argument("--rounds", type=int, default=50, help="rounds of calls (default 50)")
    parser.add_argument("--starts", type=int, default=9, help="rounds of cold starts (default 9)")
    parser.add_argument(
        "--idle", type=float, default=5.0, metavar="S", help="seconds of idling (default 5)"
    )
    parser.add_argument(
        "--share", type=float, default=2.0, metavar="S", help="seconds of each share (default 2)"
    )
    parser.add_argument(
        "--cold", type=int, default=15, metavar="N", help="rounds of cold calls (default 15)"
    )
    parser.add_argument(
        "--gap", type=float, default=0.5, metavar="S", help="seconds between these (default 0.5)"
    )
    parser.add_argument(
        "--peer",
        action="append",
        type=peer,
        default=[],
        metavar="NAME=COMMAND",
        help=f"measure another server's cold calls, too: {', '.join(PEERS)}",
    )
    parser.add_argument(
        "--panes", type=int, default=400, metavar="N", help="how many panes are many (default 400)"
    )
    parser.add_argument(
        "--log", type=int, default=16, metavar="MB", help="how long a log is long (default 16 MB)"
    )
    parser.add_argument("--no-stories", action="store_true", help="leave out the stories")
    parser.add_argument(
        "--work", default="", metavar="REGEX", help="what work to measure (default all)"
    )
    parser.add_argument(
        "--curves", action="store_true", help="measure how costs grow, and nothing else"
    )
    parser.add_argument("--picture", metavar="FILE", help="draw the curves")
    options = parser.parse_args()
    for variable in [variable for variable in os.environ if variable.startswith("TMUX")]:
        del os.environ[variable]
    if options.curves:
        families = measured(options.rounds)
        print(table(families))
        if options.picture:
            picture(families, Path(options.picture))
        return 0
    # Where Python may write no bytecode, each start would compile what was edited.
    compileall.compile_dir(Path(tmux_debug_mcp.__file__).parent, quiet=1)
    figures = Figures()
    measure_starts(figures, options.starts)
    measure_commands(figures, options.rounds)
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        socket = f"{directory}/tmux"
        subprocess.run(
            ["tmux", "-S", socket, "-f", os.devnull, "new-session", "-d", "cat"], check=True
        )
        try:
            measure_calls(figures, options.rounds, options.idle, options.share, socket)
        finally:
            subprocess.run(["tmux", "-S", socket, "kill-server"], check=True)
    measure_busy(figures, options.share)
    measure_growth(figures, options.cold, options.panes, options.log)
    peers = dict(options.peer)
    measure_cold(figures, options.cold, options.gap, peers)
    measure_terminals(figures, options.work)
    measure_turns(figures, options.work)
    held = budgets(figures, [name for name in peers if name in TMUX_BASED])
    costs = {} if options.no_stories else measure_stories()
    if options.json:
        told = {name: vars(cost) for name, cost in costs.items()}
        rows = [vars(budget) | {"held": budget.is_held} for budget in held]
        measured_all = {"samples": figures.samples, "cpu": figures.cpu}
        print(json.dumps({**measured_all, "budgets": rows, "stories": told}))
    else:
        show(figures, held, costs, [name for name in TMUX_BASED if name not in peers])
    return 0 if all(budget.is_held for budget in held) else 1


if __name__ == "__main__":
    sys.exit(main())
