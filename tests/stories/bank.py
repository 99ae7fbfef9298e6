"""Two services that pay each other and hang: each holds its ledger while it asks the other."""

import faulthandler
import os
import signal
import socket
import sys
import threading

faulthandler.register(signal.SIGUSR1)
ledger = threading.Lock()


def ask(port: int, question: str) -> str:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"{question}\n".encode())
        return connection.makefile().readline().strip()


def serve(server: socket.socket, name: str) -> None:
    while True:
        connection, _ = server.accept()
        question = connection.makefile().readline().strip()
        print(f"{name}: asked to {question}", flush=True)
        with ledger:
            connection.sendall(b"ok\n")
        connection.close()


def main(name: str, own: int, other: int) -> None:
    server = socket.create_server(("127.0.0.1", own))
    threading.Thread(target=serve, args=(server, name), daemon=True).start()
    print(f"{name}: ready, pid {os.getpid()}", flush=True)
    for line in sys.stdin:
        with ledger:
            print(f"{name}: {line.strip()}? ", end="", flush=True)
            sys.stdin.readline()
            print(f"{name}: {ask(other, line.strip())}", flush=True)


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
