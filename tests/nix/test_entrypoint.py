"""What a container starts with, outside of one."""

import signal
import subprocess
from pathlib import Path

from support import ask_until

from tmux_debug_mcp.linux import processes

_ENTRYPOINT = Path(__file__).parents[2] / "lib/sandbox/entrypoint.sh"


def test_interrupt_between_two_programs_of_the_start_ends_it(tmp_path: Path) -> None:
    with subprocess.Popen(
        ["bash", str(_ENTRYPOINT), "true"],
        # There is no such port, so it tries again and again.
        env={"HOME": str(tmp_path), "TMUX_DEBUG_SANDBOX_PORTS": "nowhere none"},
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            ask_until(lambda: _waits(process.pid), bool)
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
        finally:
            process.kill()


def _waits(pid: int) -> bool:
    """Tell whether a program that it has started pauses."""
    stats = map(processes.read_stat, processes.children(pid))
    return any(stat and stat.comm == "sleep" for stat in stats)
