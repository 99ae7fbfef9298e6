"""Complaints of programs that could not get a port, and the sockets of a pane that listen."""

import os
import resource
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from clocks import VirtualClock

from tmux_debug_mcp.linux import sockets
from tmux_debug_mcp.panes.ports import Ports, complaint, numbers

# What programs print, and the port that they could not get.
NODE = """\
node:net:1908
      throw er; // Unhandled 'error' event
Error: listen EADDRINUSE: address already in use :::3000
    at Server.setupListenHandle [as _listen2] (node:net:1908:16)
  code: 'EADDRINUSE',
  syscall: 'listen',
  address: '::',
  port: 3000
"""
COMPLAINTS = {
    "node": (NODE, 3000),
    "go": ("listen tcp :8080: bind: address already in use", 8080),
    "go with an address": ("listen tcp 127.0.0.1:8080: bind: address already in use", 8080),
    "flask": ("Address already in use\nPort 5000 is in use by another program.", 5000),
    "uvicorn": (
        (
            "ERROR: [Errno 98] error while attempting to bind on address ('127.0.0.1', 8000): "
            "address already in use"
        ),
        8000,
    ),
    "gunicorn": ("[ERROR] Connection in use: ('127.0.0.1', 8000)", 8000),
    "rails": (
        'Address already in use - bind(2) for "127.0.0.1" port 3000 (Errno::EADDRINUSE)',
        3000,
    ),
    "nginx": ("bind() to 0.0.0.0:80 failed (98: Address already in use)", 80),
    "redis": ("Could not create TCP listening socket *:6379: bind: Address already in use", 6379),
    "postgres": (
        (
            'could not bind IPv4 address "127.0.0.1": Address already in use\n'
            "HINT: Is another postmaster already running on port 5432?"
        ),
        5432,
    ),
    "spring": ("Web server failed to start. Port 8080 was already in use.", 8080),
    "vite": ("Error: Port 5173 is already in use", 5173),
    "vite with another": ("Port 5173 is in use, trying another one...", 5173),
}
NO_COMPLAINTS = [
    "",
    "Serving HTTP on 0.0.0.0 port 8000 (http://0.0.0.0:8000/) ...",
    "the port 8000 is in good use",
    "address in use: /tmp/socket",
]


@pytest.mark.parametrize(("text", "port"), COMPLAINTS.values(), ids=COMPLAINTS)
def test_complaint_names_its_port(text: str, port: int) -> None:
    named = complaint(f"something at 10:15 of line:42\n{text}\nbye")

    assert named
    assert port in named


@pytest.mark.parametrize("text", NO_COMPLAINTS)
def test_other_texts_are_no_complaints(text: str) -> None:
    assert complaint(text) is None


def test_complaint_may_name_no_port() -> None:
    assert complaint("OSError: [Errno 98] Address already in use") == []


def test_ports_far_from_the_complaint_are_not_named() -> None:
    lines = ["http://127.0.0.1:9999/", *["."] * 40, "listen :8080: address already in use"]

    assert complaint("\n".join(lines)) == [8080]


def test_numbers_of_a_command_can_be_its_ports() -> None:
    assert numbers("python3 -m http.server 8123 --bind 127.0.0.1 -x 1234567") == [8123, 127]


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Have 5,000 descriptors open, before all that the test opens."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 6000), hard))
    # Other tests leave some open.
    made = [os.dup(0) for _ in range(5000 - len(os.listdir("/proc/self/fd")))]
    yield
    for fd in made:
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class _ThisProcess:
    """A place in which only this process is."""

    def members(self) -> list[int]:
        return [os.getpid()]


@pytest.mark.usefixtures("many_descriptors")
def test_look_at_a_pane_reads_few_of_its_descriptors_and_the_next_ones_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listeners, place = sockets.Listeners(), _ThisProcess()
    listeners.read()
    anything: Any = place
    ports = Ports(anything, listeners, listeners.version, VirtualClock())
    reads: list[int] = []
    socket_at = sockets.socket_at

    def counted(pid: int, fd: int) -> int:
        reads.append(fd)
        return socket_at(pid, fd)

    monkeypatch.setattr(sockets, "socket_at", counted)
    with socket.create_server(("127.0.0.1", 0)) as server:
        looks = 0
        while not ports.ends():
            assert len(reads) < 1500, "in one look"
            reads.clear()
            looks += 1
            assert looks < 10
        assert looks == 4  # 1,024 each
        reads.clear()
        assert [end.port for end in ports.ends()] == [server.getsockname()[1]]
    assert not ports.ends()
