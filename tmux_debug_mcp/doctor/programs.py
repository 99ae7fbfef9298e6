"""The programs that are started to see what they do. None of them outlives the look at them."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Self

# A server of ours ends within this time.
_GRACE_S = 0.4


class Programs:
    """The programs that were started, each in a process group of its own.

    Leaving the context kills those that still run, and no other can be started then: threads that
    nobody waits for any more may try.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: list[subprocess.Popen[bytes]] = []
        self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._is_over = True
        for process in self._started:
            _kill(process)

    @contextlib.contextmanager
    def running(
        self, words: Sequence[str], env: Mapping[str, str], cwd: Path, errors: IO[bytes]
    ) -> Iterator["subprocess.Popen[bytes]"]:
        """Run a program with pipes during the block; then kill what is left of it.

        Args:
            words: Its command line.
            env: Its environment.
            cwd: Its directory.
            errors: The file for its standard error.

        Raises:
            OSError: It can't be started.
        """
        with self._lock:
            if self._is_over:
                raise InterruptedError
            process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
            )
            self._started.append(process)
        try:
            yield process
        finally:
            _kill(process)
            for stream in filter(None, (process.stdin, process.stdout)):
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def output(self, words: Sequence[str], env: Mapping[str, str], timeout_s: float) -> str:
        """Return what a program prints, on both of its streams.

        Raises:
            OSError: It can't be started.
            TimeoutError: It does not end in time.
        """
        with (
            open(os.memfd_create("errors"), "w+b") as errors,
            self.running(words, env, Path("/"), errors) as process,
        ):
            try:
                printed, _ = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                raise TimeoutError from None
            errors.seek(0)
            return (printed + errors.read()).decode(errors="replace").strip()


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End a program's process group, unless the program has ended by itself.

    SIGTERM comes first: a server of ours then takes its panes and files with it.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
