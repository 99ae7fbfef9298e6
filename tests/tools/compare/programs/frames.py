r"""Print 60 lines, then draw a screen, and another one at the next key: `frames.py main|alternate`.

The second screen is drawn over the first one, and only where it differs.
"""

import os
import sys
import time
import tty

FIRST = (
    "\x1b[H\x1b[2JJobs: 3        running\x1b[3;3Hbuild    done"
    "\x1b[4;3Hdeploy   running\x1b[5;3Htests    running\x1b[8;1Hq: quit"
)
SECOND = "\x1b[1;7H2\x1b[3;12Hfailed\x1b[4;1H\x1b[K\x1b[7;3Hdeploy   waits\x1b[8;1H\x1b[K"

print("\n".join(f"line {number}" for number in range(60)))
tty.setraw(0)
os.write(1, ("\x1b[?1049h" if "alternate" in sys.argv else "").encode() + FIRST.encode())
os.read(0, 1)
os.write(1, SECOND.encode())
time.sleep(600)
