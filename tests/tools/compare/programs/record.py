r"""Write what the terminal sends into a file: `record.py FILE [raw] [SEQUENCE]`.

Line by line, or byte by byte if `raw` is given. SEQUENCE, such as one that sets a mode of the
terminal, is printed first, with \e for ESC. The file is there as soon as keys may be typed.
"""

import os
import sys
import termios
import tty

path, *words = sys.argv[1:]
if "raw" in words:
    tty.setraw(0, termios.TCSANOW)
for sequence in words:
    if sequence != "raw":
        os.write(1, sequence.replace("\\e", "\x1b").encode())
with open(path, "wb", buffering=0) as file:
    while data := os.read(0, 1 << 16):
        file.write(data)
