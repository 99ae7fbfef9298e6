"""Programs of ours without the second that the imports of the SDK take.

A nursery is a process that has imported everything. For each program that is asked for, it forks,
and the copy runs the program's main() with its arguments, environment, directory and files. It
differs from an executed program in that no module is missing, and that /proc shows the nursery's
command line and environment, but for the test's mark.

So it is for tests of what a program does. How it starts, and what it imports when, is proved by
tests that execute it.
"""

import ctypes
import gc
import importlib
import json
import os
import pkgutil
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

_MAINS = {
    "tmux-debug": "tmux_debug_mcp.command.main",
    "tmux-debug-mcp": "tmux_debug_mcp.command.serve",
}
# What programs of ours import only when they need it.
_IMPORTED_LATE = ("anyio._backends._asyncio", "jsonschema", "re2")
_MAX_REQUEST_BYTES = 1 << 20
# The census finds the processes of a test by this variable.
_MARK = "MCP_DEBUG_TEST"
_NO_TEST = "0" * 16


class Copy:
    """A program in a copy of the nursery, with what tests need of `subprocess.Popen`.

    Args:
        facts: Where the nursery writes the process id, and at the end the exit status.
        stdin: What the program reads from; None if it has no input.
        stdout: What it writes to.
        stderr: What it complains to.
    """

    def __init__(
        self, facts: IO[str], stdin: IO[Any] | None, stdout: IO[Any], stderr: IO[Any]
    ) -> None:
        self.pid = int(facts.readline())
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None
        self._facts = facts
        self._printed: tuple[Any, Any] | None = None

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while it runs."""
        if self.returncode is None and select.select([self._facts], [], [], 0)[0]:
            self.returncode = int(self._facts.readline())
            self._facts.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, and return the exit status.

        Raises:
            subprocess.TimeoutExpired: It takes longer than these seconds.
        """
        if self.returncode is None:
            select.select([self._facts], [], [], timeout)
        status = self.poll()
        if status is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return status

    def communicate(self, timeout: float | None = None) -> tuple[Any, Any]:
        """Close the input, and return what the program prints until its end.

        Raises:
            subprocess.TimeoutExpired: It takes longer than these seconds.
        """
        if self._printed is None:
            if self.stdin:
                self.stdin.close()
            with ThreadPoolExecutor() as readers:
                out, err = (readers.submit(one.read) for one in (self.stdout, self.stderr))
                try:
                    self.wait(timeout)
                except subprocess.TimeoutExpired:
                    self.kill()
                    raise
            self._printed = out.result(), err.result()
            self.stdout.close()
            self.stderr.close()
        return self._printed

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # the nursery may have reaped it since
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Nursery:
    """The nursery, as tests see it.

    Args:
        env: Its environment, of which the copies get nothing but how their locale was coerced.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Pipes, as the copies have: Python's files know whether they can be seeked.
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            env={**env, _MARK: _NO_TEST},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()

    def close(self) -> None:
        """End it. Programs that still run go on."""
        self._socket.close()
        self._process.communicate()

    def start(
        self,
        program: str,
        words: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        has_input: bool = False,
        encoding: str | None = None,
    ) -> Copy:
        """Start a program.

        Args:
            program: `tmux-debug` or `tmux-debug-mcp`.
            words: Its arguments.
            env: Its environment.
            cwd: Its directory.
            has_input: Whether it gets a pipe as its standard input; else that is empty.
            encoding: Of its streams; None for bytes.
        """
        kind = "" if encoding else "b"
        stdin, to_stdin = os.pipe()
        from_stdout, stdout = os.pipe()
        from_stderr, stderr = os.pipe()
        from_nursery, facts = os.pipe()
        request = {"program": program, "words": words, "env": dict(env), "cwd": str(cwd)}
        theirs = [stdin, stdout, stderr, facts]
        socket.send_fds(self._socket, [json.dumps(request).encode()], theirs)
        for fd in theirs:
            os.close(fd)
        if not has_input:
            os.close(to_stdin)
        return Copy(
            open(from_nursery, encoding="ascii"),
            open(to_stdin, f"w{kind}", encoding=encoding) if has_input else None,
            open(from_stdout, f"r{kind}", encoding=encoding),
            open(from_stderr, f"r{kind}", encoding=encoding),
        )


def _import_everything() -> None:
    package = importlib.import_module("tmux_debug_mcp")
    for module in pkgutil.walk_packages(package.__path__, "tmux_debug_mcp."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
    for name in _IMPORTED_LATE:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


def _born(control: socket.socket) -> dict[str, Any]:
    """Fork for each request; return it in the copy, which has its files then.

    The nursery itself ends here, when nobody can ask it any more.
    """
    # C-c is for the tests, which need the nursery to clean up. Blocked, not ignored: a copy gets it
    # as soon as it can.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    events = select.poll()
    events.register(control, select.POLLIN)
    running: dict[int, tuple[int, int]] = {}
    while True:
        for fd, _ in events.poll():
            if fd in running:
                pid, facts = running.pop(fd)
                _, status = os.waitpid(pid, 0)
                os.write(facts, b"%d\n" % os.waitstatus_to_exitcode(status))
                events.unregister(fd)
                os.close(facts)
                os.close(fd)
                continue
            data, files, _, _ = socket.recv_fds(control, _MAX_REQUEST_BYTES, 4)
            if not data:
                os._exit(0)
            pid = os.fork()
            if pid == 0:
                control.close()
                for number, file in enumerate(files[:3]):
                    os.dup2(file, number)
                os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
                return dict(json.loads(data))
            *streams, facts = files
            for file in streams:
                os.close(file)
            os.write(facts, b"%d\n" % pid)
            handle = os.pidfd_open(pid)
            running[handle] = pid, facts
            events.register(handle, select.POLLIN)


def _mark(value: str) -> None:
    """Show the mark of a test in /proc, which reads the memory of the first environment."""
    assert len(value) == len(_NO_TEST)
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_void_p
    ctypes.memmove(getenv(_MARK.encode()), value.encode(), len(value))


def _run(request: Mapping[str, Any]) -> None:
    """Run the program that was asked for, in its surroundings."""
    _mark(request["env"].get(_MARK, _NO_TEST))
    coerced = {name: value for name, value in os.environ.items() if name == "LC_CTYPE"}
    os.environ.clear()
    os.environ.update(coerced | request["env"])
    time.tzset()
    os.chdir(request["cwd"])
    sys.argv = [request["program"], *request["words"]]
    main = importlib.import_module(_MAINS[request["program"]]).main
    try:
        main()
    except SystemExit as end:
        if not isinstance(end.code, int):  # which Python prints
            raise
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code)  # to tear down what the nursery has imported takes longer than a test


if __name__ == "__main__":
    _import_everything()
    _run(_born(socket.socket(fileno=int(sys.argv[1]))))
