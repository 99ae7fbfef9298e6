"""A worker that does not stop: it takes a signal for a failed call, and tries again."""

import faulthandler
import os
import signal
import sys
import time

faulthandler.register(signal.SIGUSR2)


def retry(number: int, _frame: object) -> None:
    print(f"signal {number}: interrupted, will try again", flush=True)


for name in (signal.SIGINT, signal.SIGTERM):
    signal.signal(name, retry)


def wait_for_lease() -> None:
    while True:
        time.sleep(60)


print(f"worker: pid {os.getpid()}, waiting for the lease", flush=True)
wait_for_lease()
sys.exit(0)
