"""Who listens where, as netlink and /proc tell it."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from support import ask_until

from tmux_debug_mcp.linux import sockets

# As the kernel of a little-endian machine prints them.
TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1FBB 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0
   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4712 1 0
   2: 0100007F:1FBB 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 0 1 0
"""
TCP6 = """\
  sl  local_address                         remote_address                        st
   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 0:0 0:0 0 7 0 5
   1: 00000000000000000000000001000000:1F91 00000000000000000000000000000000:0000 0A 0:0 0:0 0 7 0 6
   2: 0000000000000000FFFF00000100007F:1F92 0000000000000000FFFF00000100007F:C350 01 0:0 0:0 0 7 0 8
"""

# The address to bind to, whether it takes both kinds, and the address that is shown.
LISTENERS = {
    "IPv4": ("127.0.0.1", False, "127.0.0.1"),
    "all of IPv4": ("0.0.0.0", False, "0.0.0.0"),  # noqa: S104  nobody connects
    "IPv6": ("::1", False, "[::1]"),
    "all of IPv6": ("::", False, "[::]"),
    "all": ("", True, "*"),
}


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def inode(one: socket.socket) -> int:
    return os.fstat(one.fileno()).st_ino


def test_table_of_the_kernel_is_read() -> None:
    listening, anywhere, accepted = sockets.read_table(TCP)

    assert (listening.address, listening.inode, listening.uid) == ("127.0.0.1:8123", 4711, 1000)
    assert listening.state == sockets.TCP_LISTEN
    assert anywhere.address == "0.0.0.0:22"
    assert (accepted.peer, accepted.inode) == ("127.0.0.1:50000", 0)


def test_table_of_ipv6_is_read() -> None:
    anywhere, loopback, mapped = sockets.read_table(TCP6)

    assert anywhere.address == "*:8080"
    assert loopback.address == "[::1]:8081"
    assert (mapped.address, mapped.peer) == ("127.0.0.1:8082", "127.0.0.1:50000")


def test_both_families_are_listed_at_once(server: socket.socket) -> None:
    states = 1 << sockets.TCP_LISTEN

    def each() -> set[sockets.End]:
        return {
            *sockets.ends(socket.AF_INET, states=states),
            *sockets.ends(socket.AF_INET6, states=states),
        }

    with socket.create_server(("::1", 0), family=socket.AF_INET6) as other:
        # Others on this machine may come and go meanwhile.
        at_once = ask_until(lambda: set(sockets.listening()), lambda ends: ends == each())

        assert {inode(server), inode(other)} <= {end.inode for end in at_once}


@pytest.mark.parametrize(("host", "is_dual", "shown"), LISTENERS.values(), ids=LISTENERS)
def test_address_is_as_ss_shows_it(host: str, is_dual: bool, shown: str) -> None:  # noqa: FBT001
    family = socket.AF_INET6 if is_dual or ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family, dualstack_ipv6=is_dual) as server:
        addresses = {end.inode: end.address for end in sockets.listening()}

        assert addresses[inode(server)] == f"{shown}:{server.getsockname()[1]}"


def test_without_netlink_the_table_tells_the_same(
    server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = next(end for end in sockets.listening() if end.inode == inode(server))

    def refuse(*_: object) -> Iterator[bytes]:
        raise PermissionError

    monkeypatch.setattr(sockets, "_ask", refuse)

    assert told in sockets.listening()


def test_connection_that_is_not_accepted_has_an_end_without_an_inode(
    server: socket.socket,
) -> None:
    with socket.create_connection(server.getsockname()) as client:
        port = client.getsockname()[1]
        [waiting] = [end for end in sockets.ends(socket.AF_INET) if end.peer_port == port]

        assert waiting.inode == 0


def test_ends_of_a_pair_name_each_other() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert sockets.unix_end(inode(one)) == sockets.UnixEnd("", inode(other), is_listening=False)


def test_holder_is_the_oldest_process_that_has_the_socket(server: socket.socket) -> None:
    assert sockets.holder([inode(server)]) == os.getpid()


def test_child_that_has_a_socket_alone_is_its_holder(server: socket.socket) -> None:
    program = "import sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-S", "-c", program],
        pass_fds=[server.fileno()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout
        child.stdout.readline()
        number = inode(server)
        server.close()
        found = ask_until(lambda: sockets.holder([number]), lambda pid: pid == child.pid)
        child.communicate()

    assert found == child.pid


def test_nobody_holds_a_socket_that_there_is_not() -> None:
    assert sockets.holder([1 << 40]) is None
    assert sockets.unix_end((1 << 32) - 1) is None
