"""Callers of a server's socket: where they run, and what reading from them costs."""

import os
import socket
import subprocess
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import anyio
import pytest
from support import PATIENCE_S, eventually

from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.sockets import listener, servers
from tmux_debug_mcp.sockets.listener import Caller, Greeting

MiB = 1 << 20
# The pid of a server that started none of the processes here.
OTHER_SERVER = 1 << 30


@contextmanager
def connected() -> Iterator[tuple[Caller, socket.socket]]:
    ours, theirs = socket.socketpair()
    caller = Caller(ours)
    with theirs:
        yield caller, theirs
    caller.close()


def has_unread(caller: Caller, size: int) -> bool:
    return len(caller._unread) == size


class TestWhereItRuns:
    """Only who surely runs elsewhere isn't taken for a program in a pane."""

    def test_our_child_may_be_in_a_pane_and_our_parent_is_in_none(self) -> None:
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
            assert listener._may_be_in_pane(child.pid)
            assert not listener._may_be_in_pane(os.getppid())
        # It has ended, and may have left a child that still has its connection.
        assert listener._may_be_in_pane(child.pid)

    def test_process_behind_many_others_may_be_in_a_pane(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
            monkeypatch.setattr(os, "getpid", lambda: OTHER_SERVER)
            assert not listener._may_be_in_pane(other.pid)

            monkeypatch.setattr(servers, "_MAX_ANCESTORS", 1)
            assert listener._may_be_in_pane(other.pid)

    def test_process_that_we_can_not_see_is_in_no_pane(self) -> None:
        assert not listener._may_be_in_pane(0)

    @pytest.mark.parametrize("tagged", ["itself", "its parent"])
    def test_process_with_our_tag_may_be_in_a_pane_whoever_started_it(
        self, monkeypatch: pytest.MonkeyPatch, tagged: str
    ) -> None:
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
            pid = other.pid if tagged == "itself" else os.getpid()
            monkeypatch.setattr(os, "getpid", lambda: OTHER_SERVER)
            assert not listener._may_be_in_pane(other.pid)

            tag = f"tmux-debug-mcp-{OTHER_SERVER}-01234567/debug-1"
            monkeypatch.setattr(processes, "tag", lambda asked: tag if asked == pid else "")
            assert listener._may_be_in_pane(other.pid)


class TestReading:
    async def test_greeting_that_comes_in_pieces_is_read_without_copies_of_the_rest(self) -> None:
        """As many callers may send a byte at a time as there is room for."""
        with connected() as (caller, peer):
            peer.settimeout(0)
            greetings: list[Greeting] = []

            async def greet() -> None:
                greetings.append(await caller.greeting(PATIENCE_S))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(greet)
                unsent = b'{"much": "' + b"x" * (7 * MiB)
                while unsent:
                    await anyio.wait_writable(peer)
                    unsent = unsent[peer.send(unsent) :]
                await eventually(lambda: len(caller._unread) > 7 * MiB)
                tracemalloc.start()
                try:
                    for size in range(7 * MiB + 11, 7 * MiB + 31):
                        peer.send(b"x")
                        await eventually(partial(has_unread, caller, size))
                    _, most = tracemalloc.get_traced_memory()
                finally:
                    tracemalloc.stop()
                peer.send(b'"}\n')

        assert most < MiB
        assert len(greetings[0].wish["much"]) == 7 * MiB + 20

    async def test_what_a_caller_says_after_its_greeting_is_not_kept(self) -> None:
        with connected() as (caller, peer):
            peer.settimeout(0)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(caller.wait_until_gone)
                for _ in range(64):
                    await anyio.wait_writable(peer)
                    peer.send(b"x" * MiB)
                peer.shutdown(socket.SHUT_WR)

            assert len(caller._unread) == 0
