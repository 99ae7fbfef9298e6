"""Runs a program with variables that no shell passes on, in addition to those that it was started with.

    python -I -S environment.py FILE PROGRAM [ARGUMENT...]

In the file, each variable has a zero byte behind it. They are no arguments, for other users can read those. This is a
program, and imports only the standard library.
"""

import os
import sys


def main(path: str, argv: list[str]) -> None:
    """Replace this process by the program."""
    # Python itself may have changed what it was started with.
    with open("/proc/self/environ", "rb") as file:
        entries = file.read().split(b"\0")
    with open(path, "rb") as file:
        entries += file.read().split(b"\0")
    env = dict(entry.split(b"=", 1) for entry in entries if b"=" in entry[1:])
    os.unlink(path)
    os.execvpe(argv[0], argv, env)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
