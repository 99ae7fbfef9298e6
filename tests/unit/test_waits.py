"""What a thread waits for, told by its system call."""

import os
import subprocess
import sys
from functools import partial

import pytest
from support import ask_until

from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.linux.waits import Wait, wait_of


@pytest.mark.parametrize(("timeout_s", "is_alone"), [(None, True), (1000, False)])
def test_wait_with_a_timeout_is_not_for_the_terminal_alone(
    timeout_s: float | None, *, is_alone: bool
) -> None:
    waits = f"""
import fcntl, select, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
poll = select.epoll()
poll.register(0, select.EPOLLIN)
poll.poll({timeout_s})
"""
    master, terminal = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", waits], stdin=terminal, start_new_session=True
    ) as process:
        try:
            wait = ask_until(partial(_wait_of, process.pid), lambda wait: wait is not None)
            assert wait is not None
            assert wait.is_for_it_alone == is_alone
        finally:
            process.kill()
            os.close(terminal)
            os.close(master)


def _wait_of(pid: int) -> Wait | None:
    """Return it once it is for the terminal."""
    stat = processes.read_stat(pid)
    wait = stat and wait_of(pid, str(pid), stat.tty)
    return wait if wait and wait.is_for_terminal else None
