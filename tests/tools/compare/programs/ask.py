"""Start slowly, then ask on an emptied keyboard as getpass(3) does: `ask.py FILE [PROMPT]`."""

import os
import sys
import termios
import time

path, *prompt = sys.argv[1:]
time.sleep(0.7)
mode = termios.tcgetattr(0)
termios.tcsetattr(0, termios.TCSAFLUSH, mode)
os.write(1, (prompt or ["Name: "])[0].encode())
answer = sys.stdin.readline()
with open(path, "w") as file:
    file.write(answer)
print(f"hello {answer}", end="")
sys.stdin.readline()
