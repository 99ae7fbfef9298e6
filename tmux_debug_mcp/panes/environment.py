"""Runs a program with variables that no shell passes on, in addition to the inherited ones.

    python -I -S environment.py FILE PROGRAM [ARGUMENT...]

FILE contains the variables, each followed by a zero byte. They are not arguments, since other users
can read those. The program removes the file.

This is a separate program, and imports only the standard library.
"""

import os
import sys


def main(path: str, argv: list[str]) -> None:
    """Replace this process with the program, adding the variables in the file at that path."""
    # Read from the kernel, since Python may change its variables when it starts. Source: proc(5).
    with open("/proc/self/environ", "rb") as file:
        entries = file.read().split(b"\0")
    with open(path, "rb") as file:
        entries += file.read().split(b"\0")
    os.unlink(path)
    env = dict(entry.split(b"=", 1) for entry in entries if b"=" in entry[1:])
    os.execvpe(argv[0], argv, env)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
