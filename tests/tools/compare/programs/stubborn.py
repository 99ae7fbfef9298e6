"""Ignore all that can be ignored, with a child in a session of its own: `stubborn.py FILE`."""

import os
import signal
import sys
import time

for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
with open(sys.argv[1], "a") as file:
    file.write(f"{os.getpid()}\n")
time.sleep(600)
