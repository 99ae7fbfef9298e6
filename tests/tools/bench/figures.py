"""Samples: how long something took, and the processor time that it used.

Neighbours on the machine make a call take longer, but hardly use more processor time. So budgets
compare processor time where the work is a server's own, and the faster calls' time where a call
waits for other processes.
"""

import os
import statistics
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from wire import Server

from tmux_debug_mcp.linux import processes

T = TypeVar("T")

# A quarter of the samples takes at most this rank's time.
_QUARTER = 4


@dataclass(frozen=True)
class Budget:
    """A promise: a figure of one run, and the most that it may be."""

    name: str
    figure: float
    most: float
    unit: str

    @property
    def is_held(self) -> bool:
        """Whether it is kept."""
        return self.figure <= self.most


class Figures:
    """Samples by name.

    Attributes:
        samples: How long it took, in milliseconds unless the name says otherwise.
        cpu: The processor time, in milliseconds, of what was measured with processes.
    """

    def __init__(self) -> None:
        self.samples: dict[str, list[float]] = defaultdict(list)
        self.cpu: dict[str, list[float]] = defaultdict(list)

    def time(self, name: str, action: Callable[[], T], *pids: int) -> T:
        """Do something, and note how long it took and what these processes used meanwhile."""
        before, begin = cpu_ms(*pids), time.perf_counter()
        result = action()
        self.samples[name].append((time.perf_counter() - begin) * 1000)
        if pids:
            self.cpu[name].append(cpu_ms(*pids) - before)
        return result

    def run(
        self, name: str, command: Sequence[str], *pids: int, env: Mapping[str, str] | None = None
    ) -> None:
        """Run a command, and note how long it took and what it and these processes used."""
        before, begin = cpu_ms(*pids), time.perf_counter()
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        self.samples[name].append((time.perf_counter() - begin) * 1000)
        own_ms = (usage.ru_utime + usage.ru_stime) * 1000
        self.cpu[name].append(own_ms + cpu_ms(*pids) - before)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, command

    def median(self, name: str) -> float:
        """Return the median of the samples of a name."""
        return statistics.median(self.samples[name])

    def quick(self, name: str) -> float:
        """Return what the quickest quarter of the samples stays below."""
        samples = sorted(self.samples[name])
        return samples[len(samples) // _QUARTER]

    def median_cpu(self, name: str) -> float:
        """Return the median of the processor times of a name."""
        return statistics.median(self.cpu[name])


class MeasuredServer(Server):
    """A server whose tools all succeed: the time of an error says nothing."""

    def call_tool(self, tool: str, /, **arguments: Any) -> Any:  # noqa: ANN401
        """Call a tool and return its result."""
        result = super().call_tool(tool, **arguments)
        assert not result.get("isError"), result
        return result


def cpu_ms(*pids: int) -> float:
    """Return the processor time that processes have used so far."""
    return sum(map(processes.run_ns, pids)) / 1e6
