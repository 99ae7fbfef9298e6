"""Sockets: who listens where, what their two ends are, and who has them open.

We ask the kernel through netlink, which lists all listening sockets in 0.03 ms. Where netlink is
refused, reading /proc/net/tcp takes some milliseconds. We see only sockets of our own network
namespace. Source: sock_diag(7), the kernel's linux/inet_diag.h and linux/unix_diag.h; proc_net(5).
"""

import functools
import os
import socket
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address
from itertools import islice

from . import processes

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_TCPDIAG_GETSOCK = 18  # of all families
_NLM_F_REQUEST, _NLM_F_DUMP = 0x1, 0x300
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
# struct nlmsghdr: length, type, flags, sequence, port.
_HEADER = struct.Struct("=IHHII")
# struct inet_diag_req_v2: family, protocol, extensions, states, and a struct inet_diag_sockid.
_INET_REQUEST = struct.Struct("=BBBxI48s")
# struct inet_diag_req: family, two lengths, extensions; an inet_diag_sockid; states, what to dump.
_TCP_REQUEST = struct.Struct("=BBBB48sII")
# struct inet_diag_msg: family, state; of the sockid the ports and addresses; uid and inode.
_INET_MESSAGE = struct.Struct("=BBxx2s2s16s16s12x12xII")
_INET_DIAG_SKV6ONLY = 11
# struct unix_diag_req: family, protocol, states, inode, what to show, no cookie.
_UNIX_REQUEST = struct.Struct("=BBxxIIIII")
_UNIX_MESSAGE_BYTES = 16
_UNIX_DIAG_NAME, _UNIX_DIAG_PEER = 0, 2
_UDIAG_SHOW_NAME, _UDIAG_SHOW_PEER = 0x1, 0x4
# struct rtattr: length, type.
_ATTRIBUTE = struct.Struct("=HH")
_NO_COOKIE = 0xFFFFFFFF
_ALL_STATES = 0xFFFFFFFF
_MAX_CACHED = 1024

# States of TCP. Source: the kernel's net/tcp_states.h.
TCP_ESTABLISHED, TCP_SYN_SENT, TCP_LISTEN = 1, 2, 10
_V6 = socket.AF_INET6

_LINK_PREFIX = "socket:["


@dataclass(frozen=True, slots=True)
class End:
    """One end of a connection, or a socket that listens or is bound.

    Attributes:
        inode: The socket's inode, 0 while nobody has accepted the connection.
        host: Its own address, as text.
        port: Its own port.
        peer_host: The address of the other end.
        peer_port: The port of the other end, 0 if there is none.
        state: The state of TCP.
        uid: The user who made it.
        is_dual: It is bound to all addresses of IPv6 and of IPv4.
    """

    inode: int
    host: str
    port: int
    peer_host: str
    peer_port: int
    state: int
    uid: int
    is_dual: bool = False

    @property
    def address(self) -> str:
        """Its own address and port, as ss(8) shows them: `127.0.0.1:80`, `[::1]:80`, `*:80`."""
        return f"{'*' if self.is_dual else _bracketed(self.host)}:{self.port}"

    @property
    def peer(self) -> str:
        """The address and port of the other end."""
        return f"{_bracketed(self.peer_host)}:{self.peer_port}"


@dataclass(frozen=True, slots=True)
class UnixEnd:
    """A Unix socket: its name ("" for none), its other end's inode (0 for none), its state."""

    name: str
    peer: int
    is_listening: bool


def listening() -> list[End]:
    """Return the TCP sockets of this network namespace that listen."""
    states = 1 << TCP_LISTEN
    request = _TCP_REQUEST.pack(socket.AF_UNSPEC, 0, 0, 0, bytes(48), states, 0)
    try:
        return list(map(_listening_end, _ask(request, _NLM_F_DUMP, _TCPDIAG_GETSOCK)))
    except OSError:
        return [*ends(socket.AF_INET, states=states), *ends(socket.AF_INET6, states=states)]


class Listeners:
    """The sockets that listen on this machine.

    Attributes:
        version: Changes whenever the set of sockets does.
    """

    def __init__(self) -> None:
        self.version = 0
        self._since: dict[int, int] = {}

    def read(self) -> Sequence[End]:
        """Return the sockets that listen now, sorted by port."""
        found = sorted(listening(), key=lambda end: (end.port, end.address))
        inodes = {end.inode for end in found}
        if inodes != self._since.keys():
            self.version += 1
            self._since = {inode: self._since.get(inode, self.version) for inode in inodes}
        return found

    def since(self, inode: int) -> int:
        """Return the version in which a socket was first seen."""
        return self._since.get(inode, self.version)


def ends(
    family: int,
    protocol: int = socket.IPPROTO_TCP,
    *,
    states: int = _ALL_STATES,
    most: int | None = None,
) -> list[End]:
    """Return the sockets of a family and a protocol that are in one of these states, as bits.

    If there are more than `most`, return that many.
    """
    request = _INET_REQUEST.pack(family, protocol, 0, states, bytes(48))
    try:
        return list(map(_inet_end, islice(_ask(request, _NLM_F_DUMP), most)))
    except OSError:
        if protocol != socket.IPPROTO_TCP:
            return []
        name = "tcp6" if family == _V6 else "tcp"
        text = processes.read(f"/proc/net/{name}").decode()
        found = (end for end in read_table(text) if states >> end.state & 1)
        return list(islice(found, most))


def read_table(text: str) -> Iterator[End]:
    """Yield the sockets of /proc/net/tcp or /proc/net/tcp6. Source: proc_net(5).

    Their addresses are words in the machine's byte order. They don't say whether a socket bound to
    all addresses of IPv6 also takes those of IPv4: most do.
    """
    for line in text.splitlines()[1:]:
        fields = line.split()
        (host, port), (peer_host, peer_port) = (_table_address(field) for field in fields[1:3])
        yield End(
            inode=int(fields[9]),
            host=host,
            port=port,
            peer_host=peer_host,
            peer_port=peer_port,
            state=int(fields[3], 16),
            uid=int(fields[7]),
            is_dual=host == "::",
        )


def _table_address(field: str) -> tuple[str, int]:
    host, _, port = field.partition(":")
    words = [int(host[start : start + 8], 16) for start in range(0, len(host), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    return _host(packed), int(port, 16)


def _inet_end(message: bytes) -> End:
    """Return what a struct inet_diag_msg says about a socket."""
    family, state, port, peer_port, host, peer_host, uid, inode = _INET_MESSAGE.unpack_from(message)
    size = 16 if family == _V6 else 4
    attributes = _attributes(message[_INET_MESSAGE.size :])
    is_any = host == bytes(16)
    return End(
        inode=inode,
        host=_host(host[:size]),
        port=int.from_bytes(port, "big"),
        peer_host=_host(peer_host[:size]),
        peer_port=int.from_bytes(peer_port, "big"),
        state=state,
        uid=uid,
        is_dual=family == _V6 and is_any and attributes.get(_INET_DIAG_SKV6ONLY) == b"\0",
    )


# What the kernel says about a socket that listens seldom changes.
_listening_end = functools.lru_cache(_MAX_CACHED)(_inet_end)


def _host(packed: bytes) -> str:
    """Return an address as text; an IPv4 address of an IPv6 socket in the form of IPv4."""
    if len(packed) == 4:  # noqa: PLR2004
        return socket.inet_ntop(socket.AF_INET, packed)
    address = IPv6Address(packed)
    return str(address.ipv4_mapped or address)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def unix_end(inode: int) -> UnixEnd | None:
    """Return what is known about a Unix socket; None if there is none or the kernel won't say."""
    request = _UNIX_REQUEST.pack(
        socket.AF_UNIX,
        0,
        _ALL_STATES,
        inode,
        _UDIAG_SHOW_NAME | _UDIAG_SHOW_PEER,
        _NO_COOKIE,
        _NO_COOKIE,
    )
    try:
        messages = list(_ask(request, 0))
    except OSError:
        return None
    if not messages:
        return None
    attributes = _attributes(messages[0][_UNIX_MESSAGE_BYTES:])
    name = attributes.get(_UNIX_DIAG_NAME, b"")
    # The name of an abstract socket begins with NUL, for which ss(8) shows @.
    shown = name.rstrip(b"\0") if name[:1] != b"\0" else b"@" + name[1:]
    peer = int.from_bytes(attributes.get(_UNIX_DIAG_PEER, b""), "little")
    return UnixEnd(os.fsdecode(shown), peer, messages[0][2] == TCP_LISTEN)


def _ask(request: bytes, flags: int, kind: int = _SOCK_DIAG_BY_FAMILY) -> Iterator[bytes]:
    """Yield the answers to a question about sockets. Raises OSError where the kernel refuses it."""
    header = _HEADER.pack(_HEADER.size + len(request), kind, _NLM_F_REQUEST | flags, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as netlink:
        netlink.send(header + request)
        while True:
            data = netlink.recv(1 << 16, socket.MSG_DONTWAIT)  # the kernel has answered at once
            position = 0
            while position + _HEADER.size <= len(data):
                length, answers, *_ = _HEADER.unpack_from(data, position)
                body = data[position + _HEADER.size : position + length]
                if answers == _NLMSG_DONE:
                    return
                if answers == _NLMSG_ERROR:
                    [number] = struct.unpack_from("=i", body)
                    raise OSError(-number, os.strerror(-number))
                yield body
                position += (length + 3) & ~3
            if not flags & _NLM_F_DUMP:
                return


def _attributes(data: bytes) -> dict[int, bytes]:
    """Return the attributes at the end of a message, by their types."""
    found = {}
    position = 0
    while position + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, position)
        if length < _ATTRIBUTE.size:
            break
        found[kind] = data[position + _ATTRIBUTE.size : position + length]
        position += (length + 3) & ~3
    return found


def sockets_of(pid: int) -> Iterator[tuple[int, int]]:
    """Yield the descriptors and inodes of the sockets that a process has open.

    None are yielded for a process that is gone or another user's.
    """
    for number in processes.open_files(pid):
        inode = socket_at(pid, int(number))
        if inode:
            yield int(number), inode


def socket_at(pid: int, fd: int) -> int:
    """Return the inode of the socket at a process's file descriptor, 0 if there is none."""
    try:
        link = os.readlink(f"/proc/{pid}/fd/{fd}")
    except OSError:
        return 0
    return int(link[len(_LINK_PREFIX) : -1]) if link.startswith(_LINK_PREFIX) else 0


def holder(inodes: Iterable[int]) -> int | None:
    """Return a process that has one of these sockets open; None if none of our user's has.

    This looks at all processes, which can take some 100 ms. Of several, it returns the lowest pid,
    usually the oldest, which made the socket.
    """
    wanted = set(inodes)
    pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    for pid in pids:
        if any(inode in wanted for _, inode in sockets_of(pid)):
            return pid
    return None
