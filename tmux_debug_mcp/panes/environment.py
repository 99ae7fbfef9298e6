"""Runs a program with changes to the inherited environment that no shell passes on.

    python -I -S environment.py FILE PROGRAM [ARGUMENT...]

FILE contains `NAME=VALUE` for variables to set, and `NAME` for those to unset, each followed by a
zero byte. They are not arguments, since other users can read those. The program removes the file.

This is a separate program, and imports only the standard library.
"""

import os
import sys


def main(path: str, argv: list[str]) -> None:
    """Replace this process with the program, with the changes in the file at that path."""
    # Read from the kernel, since Python may change its variables when it starts. Source: proc(5).
    with open("/proc/self/environ", "rb") as file:
        inherited = file.read().split(b"\0")
    env = dict(entry.split(b"=", 1) for entry in inherited if b"=" in entry[1:])
    with open(path, "rb") as file:
        changes = file.read().split(b"\0")
    os.unlink(path)
    for change in changes:
        name, is_set, value = change.partition(b"=")
        if is_set:
            env[name] = value
        else:
            env.pop(name, None)
    os.execvpe(argv[0], argv, env)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
