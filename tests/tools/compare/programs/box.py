"""A text box that takes fast keys for a paste, as those of agents do: `box.py FILE`.

Enter submits the text: it is written to the file, which is there as soon as keys may be typed. In
a bracketed paste, in one read with text, or up to 0.12 s after three characters that came together,
Enter is a line feed in the text. Source: Codex, tui/src/bottom_pane/paste_burst.rs.
"""

import os
import sys
import time
import tty

BURST_CHARACTERS = 3
WITHIN_BURST_S = 0.008
AFTER_BURST_S = 0.12
BEGIN, END = "\x1b[200~", "\x1b[201~"
LINE_FEED = "\n"

tty.setraw(0)
os.write(1, b"\x1b[?2004h> ")
text, burst, typed_at, burst_at = "", 0, 0.0, 0.0
with open(sys.argv[1], "w", buffering=1) as file:
    while (keys := os.read(0, 1 << 16).decode()) != "\x03":
        if keys.startswith(BEGIN):
            while END not in keys:
                keys += os.read(0, 1 << 16).decode()
            text += keys.removeprefix(BEGIN).replace(END, "").replace("\r", "\n")
        elif keys == "\r" and time.monotonic() - burst_at > AFTER_BURST_S:
            file.write(f"{text}\n")
            text = ""
        else:
            now = time.monotonic()
            burst = len(keys) + (burst if now - typed_at < WITHIN_BURST_S else 0)
            typed_at = now
            if burst >= BURST_CHARACTERS or keys == "\r":
                burst_at = now
            text += keys.replace("\r", "\n")
        os.write(1, f"\r\x1b[K> {text.replace(LINE_FEED, '|')}".encode())
