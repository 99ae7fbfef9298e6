"""How the cost of calls grows, with panes, history, logs, calls in flight and clients.

Each curve is the median of some rounds at each point, in milliseconds.
"""

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from wire import SERVER, Server, connected

from .figures import MeasuredServer

_PANES = (1, 10, 50, 100, 200, 400)
_HISTORY = (0, 100, 1_000, 10_000, 50_000)
_LOG_BYTES = (1_000, 10_000, 100_000, 1_000_000, 16_000_000)
_IN_FLIGHT = (1, 4, 16, 64, 256)
_CLIENTS = (1, 2, 4, 7, 10)


@dataclass
class Family:
    """Curves over the same quantity.

    Attributes:
        title: What grows.
        points: Its values.
        curves: Milliseconds at each point, by what is called.
    """

    title: str
    points: Sequence[int]
    curves: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, rounds: int, action: Callable[[], object]) -> None:
        """Add the next point of a curve."""
        samples = []
        for _ in range(rounds):
            begin = time.perf_counter()
            action()
            samples.append((time.perf_counter() - begin) * 1000)
        self.curves.setdefault(name, []).append(statistics.median(samples))


@contextmanager
def _server() -> Iterator[Server]:
    server = MeasuredServer(None).start()
    yield server
    server.finish()


def measured(rounds: int) -> list[Family]:
    """Return all families."""
    measures = (_by_panes, _by_history, _by_log, _by_flight, _by_clients)
    return [measure(rounds) for measure in measures]


def _by_panes(rounds: int) -> Family:
    family = Family("panes", _PANES)
    with _server() as server:
        server.text("create_pane", command="bash --norc", name="shell")
        count = 1
        for most in _PANES:
            for _ in range(count, most):
                server.text("create_pane", command="exec cat", timeout_s=0)
            count = most

            def create_and_kill() -> None:
                server.text("create_pane", command="exec cat", name="new", timeout_s=0)
                server.text("kill_pane", pane_id="new")

            family.add("create and kill", rounds, create_and_kill)
            family.add("list", rounds, partial(server.text, "list_panes"))
            family.add(
                "send",
                rounds,
                lambda: server.text("send_keys", pane_id="debug-1", keys="x", timeout_s=0),
            )
            server.text("send_keys", pane_id="debug-1", keys="C-u")
            family.add(
                "capture 5 lines",
                rounds,
                lambda: server.text("capture_pane", pane_id="shell", lines=5),
            )
            family.add("run", rounds, lambda: server.text("run", pane_id="shell", command="true"))
    return family


def _by_history(rounds: int) -> Family:
    family = Family("lines of history", _HISTORY)
    with _server() as server:
        for lines in _HISTORY:
            name = f"history-{lines}"
            server.text("create_pane", command=f"seq {lines}; exec cat", name=name, timeout_s=30)
            capture = partial(server.text, "capture_pane", pane_id=name)
            family.add("capture 100 lines", rounds, capture)
            family.add("capture 1,000 lines", rounds, partial(capture, lines=1000))
            send = partial(server.text, "send_keys", pane_id=name, keys="x\n", timeout_s=0)
            family.add("send a line", rounds, send)
    return family


def _by_log(rounds: int) -> Family:
    family = Family("bytes of a log", _LOG_BYTES)
    with _server() as server:
        for size in _LOG_BYTES:
            name = f"log-{size}"
            command = f"yes 'some words of a log' | head -c {size}; echo; echo needle; exec cat"
            server.text("create_pane", command=command, name=name, timeout_s=60)
            server.call("wait", pane_id=name, pattern="needle", since=0, timeout_s=60)
            capture = partial(server.text, "capture_pane", pane_id=name)
            family.add("search for a pattern", rounds, partial(capture, pattern="needle"))
            family.add("read from the beginning", rounds, partial(capture, since=0))
            wait = partial(server.text, "wait", pane_id=name, pattern="needle", since=0)
            family.add("wait for what is there", rounds, wait)
    return family


def _by_flight(rounds: int) -> Family:
    family = Family("captures in flight", _IN_FLIGHT)
    with _server() as server:
        server.text("create_pane", command="seq 1000; exec cat", name="pane")

        def at_once(count: int) -> None:
            arguments = {"pane_id": "pane", "lines": 5}
            for _ in range(count):
                server.send("tools/call", name="tmux_capture_pane", arguments=arguments)
            for _ in range(count):
                server.read()

        for count in _IN_FLIGHT:
            family.add("until all are answered", rounds, partial(at_once, count))
        each = family.curves["until all are answered"]
        pairs = zip(each, _IN_FLIGHT, strict=True)
        family.curves["for each"] = [all_ms / count for all_ms, count in pairs]
    return family


def _by_clients(rounds: int) -> Family:
    family = Family("clients of one server", _CLIENTS)
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        env = os.environ | {"XDG_RUNTIME_DIR": directory}
        clients: list[Server] = []
        for count in _CLIENTS:
            while len(clients) < count:
                clients.append(connected(env, directory))
                clients[-1].text("create_pane", command="exec cat", name=f"pane-{len(clients)}")

            def capture(number: int) -> None:
                clients[number].text("capture_pane", pane_id=f"pane-{number + 1}", lines=5)

            with ThreadPoolExecutor(count) as pool:
                at_once = partial(_all_done, pool, capture, range(count))
                family.add("a capture by each, at once", rounds, at_once)
            family.add("a capture by one", rounds, partial(capture, 0))
        for client in clients:
            client.finish()
        stop = "from tmux_debug_mcp.command.main import main; main()"
        subprocess.run([SERVER[0], "-c", stop, "stop"], env=env, cwd=directory, check=True)
    return family


def _all_done(
    pool: ThreadPoolExecutor, action: Callable[[int], None], numbers: Iterable[int]
) -> None:
    for _ in pool.map(action, numbers):
        pass


def table(families: Sequence[Family]) -> str:
    """Return them in Markdown."""
    parts = []
    for family in families:
        heads = " | ".join(f"{point:,}" for point in family.points)
        rows = [f"| {family.title} | {heads} |", "|---|" + "---|" * len(family.points)]
        for name, values in family.curves.items():
            rows.append(f"| {name} | {' | '.join(f'{value:.1f}' for value in values)} |")
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def picture(families: Sequence[Family], path: Path) -> None:
    """Draw them, each family in its own place, on logarithmic axes."""
    from matplotlib.figure import Figure  # noqa: PLC0415  installed for this alone

    figure = Figure(figsize=(11, 6.5), layout="constrained")
    for place, family in zip(figure.subplots(2, 3).flat, families, strict=False):
        for name, values in family.curves.items():
            place.plot([max(point, 1) for point in family.points], values, marker="o", label=name)
        place.set(title=family.title, xscale="log", yscale="log", ylabel="ms", ylim=(0.1, None))
        for axis in (place.xaxis, place.yaxis):
            axis.set_major_formatter("{x:,.10g}")
            axis.set_minor_formatter("")
        place.tick_params("x", labelrotation=20)
        place.grid(alpha=0.3)
        place.legend(fontsize="small")
    figure.axes[-1].set_visible(len(families) == len(figure.axes))
    figure.savefig(path, metadata={"Date": None})
