"""An evaluation's terminal tool on `tmux-debug`: one function for a model, and one for the score.

A model gets `terminal`, which types a line and returns what comes of it. The scorer then runs a
check in the same shell and takes its exit code. Each sample has a pane of its own.
"""

import subprocess

_LIMIT_S = "30"


def begin(sample: str) -> None:
    """Start a sample's shell."""
    _call("create", "--name", sample, "bash --norc")


def terminal(sample: str, text: str) -> str:
    """Type a line for the model, and return what follows, with the status line.

    This tells the model whether its program still runs, or awaits input.
    """
    done = _call("send", "--timeout", _LIMIT_S, sample, "--", f"{text}\n")
    return done.stdout + done.stderr


def passes(sample: str, check: str) -> bool:
    """Run the check of a sample in its shell, and tell whether it ends with 0."""
    return _call("run", "--pane", sample, "--timeout", _LIMIT_S, "--", check).returncode == 0


def end(sample: str) -> None:
    """End a sample's shell and everything that it started."""
    _call("kill", sample)


def _call(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["tmux-debug", *words], capture_output=True, text=True, check=False)
