"""Programs on terminals of their own, without tmux."""

import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tmux_debug_mcp.linux import processes


class Reading(NamedTuple):
    """A terminal that `cat` reads.

    Attributes:
        leader: The leader of its session.
        keyboard: The file to type into.
    """

    leader: int
    keyboard: int


@contextmanager
def on_terminal(script: str) -> Iterator[Reading]:
    """Run a shell script on a terminal of its own during the block."""
    keyboard, terminal = pty.openpty()
    # The leader of a session gets the first terminal that it opens as its own.
    script = f"exec <>{os.ttyname(terminal)} >&0 2>&0; {script}"
    with subprocess.Popen(["sh", "-c", script], start_new_session=True) as process:
        os.close(terminal)
        try:
            yield Reading(process.pid, keyboard)
        finally:
            processes.send_signals(processes.descendants(process.pid), signal.SIGKILL)
            process.kill()
            os.close(keyboard)
