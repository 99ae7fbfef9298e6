"""An internet for one test: names, a web server on a few ports, and a record of what reached them.

    internet.py RECORD CERTIFICATE

It runs in a container without a network, as its root, and adds public addresses to the loopback
device. The proxy of a closed sandbox joins that container. Each line of the file RECORD is a name
that was asked for, or a request.
"""

import os
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

RECORD, CERTIFICATE = sys.argv[1:]
PUBLIC = "93.184.215.14"
PUBLIC6 = "2606:2800:21f:cb07::1"
# What each name leads to. A name that is not here does not exist.
NAMES = {
    "api.example.com": [PUBLIC],
    "keyed.example.com": [PUBLIC],
    "limited.example.com": [PUBLIC],
    "not.certified.example.com": [PUBLIC],
    "ported.example.com": [PUBLIC],
    "plain.example.net": [PUBLIC],
    "evil.example": [PUBLIC],
    "a.example.org": [PUBLIC],
    "six.example.org": [PUBLIC6],
    "inside.example.org": ["10.0.0.1"],
    "loopback.example.org": ["127.0.0.1"],
    "metadata.example.org": ["169.254.169.254"],
    "azure.example.org": ["168.63.129.16"],
    "shared.example.org": ["100.100.100.200"],
    "loopback6.example.org": ["::1"],
    "mapped.example.org": ["::ffff:127.0.0.1"],
    "metadata6.example.org": ["fd00:ec2::254"],
    "nat64.example.org": ["64:ff9b::7f00:1"],
    "sixtofour.example.org": ["2002:7f00:1::1"],
    "both.example.org": [PUBLIC, "127.0.0.1"],
}
# The second answer for a name leads elsewhere.
REBOUND = {"rebound.example.org": [PUBLIC, "127.0.0.1"]}
asked: dict[str, int] = {}
lock = threading.Lock()


def record(line: str) -> None:
    with lock, open(RECORD, "a") as file:
        print(line, file=file)


class Names(socketserver.BaseRequestHandler):
    """Answers one question for a name."""

    def handle(self) -> None:
        query, server = self.request
        labels, position = [], 12
        while length := query[position]:
            labels.append(query[position + 1 : position + 1 + length].decode())
            position += 1 + length
        name = ".".join(labels).lower()
        (kind,) = struct.unpack(">H", query[position + 1 : position + 3])
        record(f"name {name}")
        addresses = NAMES.get(name)
        if addresses is None and name in REBOUND:
            if kind == 1:
                asked[name] = asked.get(name, -1) + 1
            addresses = [REBOUND[name][min(asked.get(name, 0), 1)]]
        answers = b""
        count = 0
        for address in addresses or []:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            if kind == (28 if ":" in address else 1):
                packed = socket.inet_pton(family, address)
                answers += struct.pack(">HHHIH", 0xC00C, kind, 1, 0, len(packed)) + packed
                count += 1
        flags = 0x8180 if addresses else 0x8183
        header = query[:2] + struct.pack(">HHHHH", flags, 1, count, 0, 0)
        server.sendto(header + query[12 : position + 5] + answers, self.client_address)


class Web(BaseHTTPRequestHandler):
    """Answers with what it was asked."""

    server: "Server"

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        port = self.server.server_port
        words = [self.command, str(port), str(self.headers.get("Host")), self.path, body.decode()]
        line = " ".join(words).strip()
        address = self.connection.getsockname()[0].removeprefix("::ffff:")
        key = self.headers.get("x-api-key") or self.headers.get("authorization")
        record(f"request {address} {line} key={key}")
        text = f"{line}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = answer  # noqa: N815 (http.server's names)

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    address_family = socket.AF_INET6

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


for address in (f"{PUBLIC}/32", f"{PUBLIC6}/128", "10.0.0.1/32", "169.254.169.254/32"):
    subprocess.run(["ip", "address", "add", address, "dev", "lo"], check=True)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE)
for port in (80, 443, 8080, 8443):
    server = Server(("::", port), Web)
    if port % 1000 == 443:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever).start()
names = socketserver.ThreadingUDPServer(("127.0.0.1", 53), Names)
# What root makes here belongs to the project's user, and root has no right to others' files.
os.umask(0)
Path(RECORD).touch()
names.serve_forever()
