"""A program with a text box that takes fast keys for a paste, as those of agents do.

Enter is a line feed in the text when it arrives together with text, or within 0.12 s after it, and
submits the text otherwise. Arguments: `bracketed` asks for bracketed pastes, `alone` waits for
the terminal alone, `busy` draws 50 times a second, and `kitty` asks for kitty's protocol for keys.
"""

import os
import select
import sys
import time
import tty

BURST_S = 0.12

tty.setraw(0)
timeout_s = None if "alone" in sys.argv else 60.0
if "busy" in sys.argv:
    timeout_s = 0.02
asks = "\033[?2004h" if "bracketed" in sys.argv else ""
if "kitty" in sys.argv:
    asks += "\033[>1u"
print(f"{asks}box ready", end="\r\n", flush=True)
text = ""
typed_at = 0.0
while True:
    if timeout_s is not None and not select.select([0], [], [], timeout_s)[0]:
        print(f"\r{time.monotonic()}", end="", flush=True)
        continue
    chunk = os.read(0, 1 << 16).decode()
    if chunk == "\x03":
        break
    if chunk == "\r" and time.monotonic() - typed_at > BURST_S:
        # The first of these lines has nothing that was typed, which would count as echo.
        print(f"\r\nsubmitted {len(text)}\r\n{text!r}", end="\r\n", flush=True)
        text = ""
        continue
    text += chunk
    typed_at = time.monotonic()
