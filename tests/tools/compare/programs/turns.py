"""Print five lines in turn with another program: `turns.py left|right DIRECTORY`.

Each says by a file in the directory that the other one may print, which it does 0.2 s later.
"""

import sys
import time
from pathlib import Path

LINES = 5

name, directory = sys.argv[1:]
for number in range(LINES):
    turn = Path(directory, f"{name}-{number}")
    while not turn.exists():
        time.sleep(0.005)
    time.sleep(0.2)
    print(f"{name} {number}", flush=True)
    after = f"right-{number}" if name == "left" else f"left-{number + 1}"
    Path(directory, after).touch()
time.sleep(600)
