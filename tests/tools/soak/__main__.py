"""Work at random for as long as it is told: `./dev soak --minutes 60`.

A detached server has several clients, which create panes, type, run, wait, read, cancel and kill,
by tools and by verbs, a second caller for the panes of each, and people, who take panes over and
type secrets. Each knows what the answers must be. After each round all panes are gone, and the
server's memory, descriptors and processes are looked at. What it prints first repeats a run, as far
as a machine's timing allows.
"""

import argparse
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random

from support import marked
from wire import connected

from tmux_debug_mcp.sockets import servers

from .clients import BrokenModelError, Client

_PROGRAM = [sys.executable, "-c", "from tmux_debug_mcp.command.main import main; main()"]
_MARK = "SOAK_RUN"
# How much the memory may grow from the second round to the last, in MB.
MAX_GROWTH_MB = 16.0
# What has not ended until then is left over.
_PATIENCE_S = 20.0
_WARM_ROUNDS = 2


@dataclass(frozen=True)
class Sample:
    """What a server without panes has.

    Attributes:
        memory_mb: Its resident memory.
        descriptors: Its open descriptors.
        processes: All that were started in the run: the server, its helpers and the clients.
    """

    memory_mb: float
    descriptors: int
    processes: int


def soak(minutes: float, seed: int, clients: int, panes: int, steps: int) -> list[Sample]:
    """Work in rounds; return what the server had after each.

    Raises:
        BrokenModelError: An answer was wrong, or something is left over or grows.
    """
    mark = secrets.token_hex(8)
    with tempfile.TemporaryDirectory(prefix="soak-", dir="/tmp") as directory:
        env = _environment(Path(directory), mark)
        working = []
        try:
            for number in range(clients):
                random = Random(f"{seed} {number}")  # noqa: S311
                caller, another = (connected(env, directory) for _ in range(2))
                working.append(
                    Client(number, caller, another, random, panes, _PROGRAM, env, directory)
                )
            return _rounds(minutes, steps, working, mark)
        finally:
            for client in working:
                client.server.finish()
                client.another.finish()
            subprocess.run([*_PROGRAM, "stop"], env=env, cwd=directory, check=True)


def _rounds(minutes: float, steps: int, working: Sequence[Client], mark: str) -> list[Sample]:
    runtime = working[0].env["XDG_RUNTIME_DIR"]
    [server] = [one for one in servers.running(runtime) if one.directory.startswith(runtime)]
    end = time.monotonic() + minutes * 60
    samples: list[Sample] = []
    with ThreadPoolExecutor(len(working)) as pool:
        while time.monotonic() < end or len(samples) <= _WARM_ROUNDS:
            list(pool.map(lambda client: client.work(steps), working))
            samples.append(_sample_at_rest(server.pid, mark, samples))
            calls = sum(client.calls for client in working)
            print(f"round {len(samples)}: {calls:,} calls, {samples[-1]}", flush=True)
    check_growth(samples)
    return samples


def check_growth(samples: Sequence[Sample]) -> None:
    """Check that the memory stays as it was after the first rounds.

    Raises:
        BrokenModelError: It has grown.
    """
    grown = samples[-1].memory_mb - samples[_WARM_ROUNDS - 1].memory_mb
    if grown > MAX_GROWTH_MB:
        raise BrokenModelError(f"The server's memory grew by {grown:.1f} MB.")


def _sample_at_rest(pid: int, mark: str, earlier: Sequence[Sample]) -> Sample:
    """Return what is there once nothing of the round is left.

    Raises:
        BrokenModelError: There are more descriptors or processes than after an earlier round.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        sample = _sample(pid, mark)
        before = earlier[_WARM_ROUNDS - 1] if len(earlier) >= _WARM_ROUNDS else None
        if before is None or (
            sample.descriptors <= before.descriptors and sample.processes <= before.processes
        ):
            return sample
        if time.monotonic() > deadline:
            raise BrokenModelError(f"{sample} is left; after an earlier round it was {before}")
        time.sleep(0.1)


def _sample(pid: int, mark: str) -> Sample:
    status = Path(f"/proc/{pid}/status").read_text()
    [memory] = re.findall(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
    descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    return Sample(int(memory) / 1000, descriptors, len(list(marked(f"{_MARK}={mark}", 0))))


def _environment(home: Path, mark: str) -> dict[str, str]:
    return {
        **dict.fromkeys(("HOME", "TMPDIR", "XDG_RUNTIME_DIR"), str(home)),
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "SHELL": "/bin/bash",
        _MARK: mark,
    }


def main() -> None:
    """Work, and say what was wrong."""
    parser = argparse.ArgumentParser(prog="./dev soak", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--panes", type=int, default=40, help="of each client (default 40)")
    parser.add_argument("--steps", type=int, default=200, help="of each client in a round")
    options = parser.parse_args()
    print(f"./dev soak --seed {options.seed} --clients {options.clients} --panes {options.panes}")
    try:
        soak(options.minutes, options.seed, options.clients, options.panes, options.steps)
    except BrokenModelError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
