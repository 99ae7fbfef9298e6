"""Draw on the whole screen, and a second later one row more: `draw.py TEXT`."""

import sys
import time

sys.stdout.write("\x1b[?1049h\x1b[2J\x1b[3;5HBuilding\x1b[5;5H[#####     ] 50 %")
sys.stdout.flush()
time.sleep(1.0)
sys.stdout.write(f"\x1b[7;5H{sys.argv[1]}\x1b[1;1H")
sys.stdout.flush()
time.sleep(600)
