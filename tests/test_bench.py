"""The benchmark runs and tells every budget; what it measures is for people to read."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
ENV = os.environ | {"PYTHONPATH": str(TESTS / "tools")}


def test_benchmark_tells_samples_and_budgets() -> None:
    few = ["--rounds", "1", "--starts", "1", "--idle", "0.1", "--share", "0.1", "--no-stories"]
    few += ["--work", "^document$|^terminal: colours$", "--cold", "1", "--gap", "0.1"]
    few += [
        "--panes",
        "3",
        "--log",
        "1",
        "--peer",
        f"before={shlex.quote(sys.executable)} -m tmux_debug_mcp",
    ]
    command = [sys.executable, "-m", "bench", "--json", *few]
    done = subprocess.run(
        command, cwd=TESTS, env=ENV, capture_output=True, text=True, timeout=600, check=False
    )

    assert (done.returncode in (0, 1), done.stderr) == (True, "")
    told = json.loads(done.stdout)
    samples = {"bare: call", "cold start", "first call", "longest turn: document", "grown: run"}
    assert samples | {"cold send", "cold send, before"} <= set(told["samples"])
    assert all(sample >= 0 for samples in told["samples"].values() for sample in samples)
    assert all(sample > 0 for samples in told["cpu"].values() for sample in samples)
    assert {type(budget["held"]) for budget in told["budgets"]} == {bool}
    assert len(told["budgets"]) == 27


def test_benchmark_names_the_peers_that_it_knows() -> None:
    command = [sys.executable, "-m", "bench", "--peer", "another=true"]
    done = subprocess.run(command, cwd=TESTS, env=ENV, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "another: not one of wrapix, nickgnd, before" in done.stderr
