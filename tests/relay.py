"""Run a command on a terminal of its own, and pass keys and output on a while later, as a network.

Usage: relay.py SECONDS COMMAND...
"""

import os
import pty
import select
import sys
import termios
import time
import tty
from collections import deque

_PIECE_BYTES = 1 << 16


def main() -> None:
    """Pass on what is read from either side until the command ends."""
    delay_s = float(sys.argv[1])
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606
    modes = termios.tcgetattr(0)
    tty.setraw(0)
    targets = {0: terminal, terminal: 1}
    late: deque[tuple[float, int, bytes]] = deque()
    try:
        while True:
            wait_s = max(0.0, late[0][0] - time.monotonic()) if late else None
            ready, _, _ = select.select(list(targets), [], [], wait_s)
            for source in ready:
                try:
                    data = os.read(source, _PIECE_BYTES)
                except OSError:  # the command has ended
                    data = b""
                if not data:
                    targets.pop(source)
                else:
                    late.append((time.monotonic() + delay_s, targets[source], data))
            while late and late[0][0] <= time.monotonic():
                _, target, data = late.popleft()
                while data:
                    data = data[os.write(target, data) :]
            if terminal not in targets and not late:
                return
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, modes)


if __name__ == "__main__":
    main()
