"""What programs are blocked on: real ones in real situations, all started together.

Each situation comes to its wait by itself, and stays there until it is killed. Those that run, or
whose wait is not clear, must have no words at any look.
"""

import errno
import os
import re
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support import PATIENCE_S, ask_until, marked, wait_until

from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.linux.blocking import Blockage, blocked_on

# All programs are started once, beside each other.
pytestmark = pytest.mark.xdist_group("blocking")

PYTHON = [sys.executable, "-S", "-E", "-c"]
LOOKS, LOOK_S = 6, 0.01
PREPARE = """import ctypes, fcntl, os, select, signal, socket, subprocess, sys, threading, time
def pair():
    server = socket.create_server(('127.0.0.1', 0))
    client = socket.create_connection(server.getsockname())
    return server, client, server.accept()[0]
"""


def python(program: str) -> list[str]:
    return [*PYTHON, PREPARE + program]


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


def bash(script: str) -> list[str]:
    return ["bash", "--norc", "-c", script]


PORT = r"127\.0\.0\.1:\d+"
# A server with a client, which neither writes nor reads.
CLIENT = """s = socket.create_server(('127.0.0.1', 0))
if os.fork() == 0:
    c = socket.create_connection(s.getsockname()); s.close(); time.sleep(1000)
a, _ = s.accept()
"""
ASYNC = "import asyncio\nasync def main():\n {}\nasyncio.run(main())"

# An event loop that a signal tells of the end of a child.
LOOP_WITH_CHILD = """r, w = socket.socketpair(); w.setblocking(False)
signal.set_wakeup_fd(w.fileno()); signal.signal(signal.SIGCHLD, lambda *_: None)
for child in {}: subprocess.Popen(child)
files = [r, *{}]
select.select(files, [], [])
"""
SERVER = "[socket.create_connection(('127.0.0.1', int(os.environ['SERVER'])))]"
SLEEP, STUCK = ["sleep", "1000"], python("os.read(os.pipe()[0], 1)")

# A command, and the pattern for what it is blocked on.
BLOCKED = {
    # Pipes and FIFOs.
    "reads its own pipe": (
        python("r, w = os.pipe(); os.read(r, 1)"),
        r"reads a pipe that only it writes \(fd \d+\)",
    ),
    "writes to its own pipe": (
        python("r, w = os.pipe(); os.write(w, bytes(1 << 20))"),
        r"writes to a pipe that only it reads \(fd \d+\)",
    ),
    "reads another's pipe": (["cat"], r"reads a pipe \(fd 0\)"),
    "reads a pipe that a child has, too": (
        python("r, w = os.pipe(); os.fork() or time.sleep(1000); os.read(r, 1)"),
        r"reads a pipe \(fd \d+\)",
    ),
    "writes to a pipe that a child reads no more": (
        python(
            "c = subprocess.Popen(['sleep', '1000'], stdin=subprocess.PIPE)\n"
            "c.stdin.write(bytes(1 << 20))"
        ),
        r"writes to a pipe \(fd \d+\) to sleep \(pid \d+\), which sleeps",
    ),
    "reads what a stopped child would write": (
        python(
            "c = subprocess.Popen(['sleep', '1000'], stdout=subprocess.PIPE)\n"
            "c.send_signal(signal.SIGSTOP); c.stdout.read()"
        ),
        r"reads a pipe \(fd \d+\) from sleep \(pid \d+\), which is stopped",
    ),
    "opens a FIFO to read": (
        sh("mkfifo fifo1; exec cat fifo1"),
        r"opens the FIFO fifo1, which nobody writes",
    ),
    "opens a FIFO to write": (
        python("os.mkfifo('fifo2'); open('fifo2', 'w')"),
        r"opens the FIFO fifo2, which nobody reads",
    ),
    "opens a FIFO by its full path": (
        python("os.mkfifo('fifo3'); open(os.path.abspath('fifo3'))"),
        r"opens the FIFO /\S+/fifo3, which nobody writes",
    ),
    "reads its own FIFO": (
        python("os.mkfifo('fifo4'); os.read(os.open('fifo4', os.O_RDWR), 1)"),
        r"reads the FIFO /\S+/fifo4 \(fd \d+\)",
    ),
    "selects a pipe that a child has": (
        python(
            "c = subprocess.Popen(['sleep', '1000'], stdout=subprocess.PIPE)\n"
            "select.select([c.stdout], [], [])"
        ),
        r"reads a pipe \(fd \d+\) from sleep \(pid \d+\), which sleeps",
    ),
    "deadlocks with a child": (
        python(
            "c = subprocess.Popen(['sh', '-c', 'exec 3>&1; exec cat /dev/zero >&2'],\n"
            "  stdout=subprocess.PIPE, stderr=subprocess.PIPE)\nc.stdout.read()"
        ),
        (
            r"reads a pipe \(fd \d+\) from cat \(pid \d+\),"
            r" which writes to a pipe \(fd 1\) to python\S* \(pid \d+\)"
        ),
    ),
    "reads what a child does not write that has a group of its own": (
        python(
            "c = subprocess.Popen(['sleep', '1000'], stdout=subprocess.PIPE, process_group=0)\n"
            "c.stdout.read()"
        ),
        r"reads a pipe \(fd \d+\) from sleep \(pid \d+\), which sleeps",
    ),
    "reads what a program in front of another one does not write": (
        python(
            "c = subprocess.Popen(['sh', '-c', 'sleep 1000; :'], stdout=subprocess.PIPE)\n"
            "c.stdout.read()"
        ),
        (
            r"reads a pipe \(fd \d+\) from sh \(pid \d+\),"
            r" which waits for sleep \(pid \d+\), which sleeps"
        ),
    ),
    "reads what two children do not write": (
        python(
            "r, w = os.pipe()\n"
            "for _ in range(2): subprocess.Popen(['sleep', '1000'], stdout=w)\n"
            "os.close(w); os.read(r, 1)"
        ),
        r"reads a pipe \(fd \d+\)",
    ),
    "communicates with a child": (
        python("subprocess.run(['sleep', '1000'], stdout=subprocess.PIPE, stderr=subprocess.PIPE)"),
        (
            r"reads a pipe \(fd \d+\) from sleep \(pid \d+\), which sleeps"
            r" or a pipe \(fd \d+\) from sleep \(pid \d+\)"
        ),
    ),
    # Sockets.
    "accepts": (
        python("s = socket.create_server(('127.0.0.1', 0)); s.accept()"),
        rf"accepts on {PORT}",
    ),
    "accepts on all addresses": (
        python("s = socket.create_server(('', 0)); s.accept()"),
        r"accepts on 0\.0\.0\.0:\d+",
    ),
    "accepts on all addresses of both kinds": (
        python(
            "s = socket.create_server(('', 0), family=socket.AF_INET6, dualstack_ipv6=True)\n"
            "s.accept()"
        ),
        r"accepts on \*:\d+",
    ),
    "serves HTTP": (
        [sys.executable, "-m", "http.server", "0", "--bind", "127.0.0.1"],
        rf"accepts on {PORT}",
    ),
    "serves in an event loop": (
        python(
            ASYNC.format("await (await asyncio.start_server(print, '127.0.0.1')).serve_forever()")
        ),
        rf"accepts on {PORT}",
    ),
    "reads a server that has not accepted": (
        python(
            "s = socket.create_server(('127.0.0.1', 0)); os.fork() or time.sleep(1000)\n"
            "socket.create_connection(s.getsockname()).recv(1)"
        ),
        rf"reads {PORT}, which has not accepted the connection \(fd \d+\)",
    ),
    "reads itself": (
        python("s, c, a = pair(); c.recv(1)"),
        rf"reads {PORT}, whose other end it has itself \(fd \d+\)",
    ),
    "writes to itself": (
        python("s, c, a = pair(); c.sendall(bytes(1 << 26))"),
        rf"writes to {PORT}, whose other end it has itself \(fd \d+\)",
    ),
    "reads a server from a port of its choice": (
        python(
            "s = socket.socket()\n"
            "for port in range(9051, 9999):\n"
            "    try: s.bind(('127.0.0.1', port)); break\n"
            "    except OSError: pass\n"
            "s.connect(('127.0.0.1', int(os.environ['SERVER']))); s.recv(1)"
        ),
        rf"reads {PORT} \(fd \d+\)",
    ),
    "reads a server elsewhere": (
        python("s = socket.create_connection(('127.0.0.1', int(os.environ['SERVER']))); s.recv(1)"),
        rf"reads {PORT} \(fd \d+\)",
    ),
    "polls a server elsewhere": (
        python(
            "s = socket.create_connection(('127.0.0.1', int(os.environ['SERVER'])))\n"
            "s.settimeout(1000); s.recv(1)"
        ),
        rf"reads {PORT} \(fd \d+\)",
    ),
    "selects a server for urgent data as well": (
        python(
            "s = socket.create_connection(('127.0.0.1', int(os.environ['SERVER'])))\n"
            "select.select([s], [], [s])"
        ),
        rf"reads {PORT} \(fd \d+\)",
    ),
    "waits for all events of a server": (
        python(
            "s = socket.create_connection(('127.0.0.1', int(os.environ['SERVER'])))\n"
            "e = select.epoll(); e.register(s, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)\n"
            "e.poll(); e.poll()"
        ),
        rf"waits for {PORT} \(fd \d+\)",
    ),
    "waits for all events of a pipe and a listener": (
        python(
            "s = socket.create_server(('127.0.0.1', 0)); both = select.EPOLLIN | select.EPOLLOUT\n"
            "e = select.epoll(); e.register(s, both); e.register(0, both); e.poll()"
        ),
        rf"accepts on {PORT} or reads a pipe \(fd 0\)",
    ),
    "selects a listener, and its own pipe twice": (
        python(
            "s = socket.create_server(('127.0.0.1', 0)); r, w = os.pipe()\n"
            "select.select([s, r], [], [r])"
        ),
        rf"accepts on {PORT}",
    ),
    "selects a pipe that a child has, too": (
        python("r, w = os.pipe(); os.fork() or time.sleep(1000); select.select([r], [], [], 1000)"),
        r"reads a pipe \(fd \d+\)",
    ),
    "serves, and a thread reads another server": (
        python(
            "s = socket.create_server(('127.0.0.1', 0))\n"
            "c = socket.create_connection(('127.0.0.1', int(os.environ['SERVER'])))\n"
            "threading.Thread(target=c.recv, args=(1,)).start()\n"
            "s.accept()"
        ),
        rf"a thread reads {PORT} \(fd \d+\)",
    ),
    "serves, and a thread waits for a client": (
        python(f"{CLIENT}threading.Thread(target=a.recv, args=(1,)).start()\ns.accept()"),
        rf"accepts on {PORT}",
    ),
    "serves, and a client does not read": (
        python(
            f"{CLIENT}threading.Thread(target=a.sendall, args=(bytes(1 << 26),)).start()\n"
            "s.accept()"
        ),
        rf"a thread writes to {PORT}, which connected to :\d+ \(fd \d+\)",
    ),
    "serves, and two threads wait": (
        python(
            f"{CLIENT}threading.Thread(target=a.sendall, args=(bytes(1 << 26),)).start()\n"
            "c = socket.create_connection(('127.0.0.1', int(os.environ['SERVER'])))\n"
            "threading.Thread(target=c.recv, args=(1,)).start()\n"
            "threading.Thread(target=threading.Event().wait).start()\n"
            "select.select([s], [], [])"
        ),
        rf"2 threads wait: one reads {PORT} \(fd \d+\)",
    ),
    "serves, and a thread selects two servers": (
        python(
            f"{CLIENT}two = [socket.create_connection(('127.0.0.1', int(os.environ['SERVER'])))\n"
            "    for _ in range(2)]\n"
            "threading.Thread(target=select.select, args=(two, [], [])).start()\n"
            "s.accept()"
        ),
        rf"a thread reads {PORT} \(fd \d+\) or {PORT} \(fd \d+\)",
    ),
    "serves, and a thread selects a server and a client": (
        python(
            f"{CLIENT}c = socket.create_connection(('127.0.0.1', int(os.environ['SERVER'])))\n"
            "threading.Thread(target=select.select, args=([a, c], [], [])).start()\n"
            "s.accept()"
        ),
        rf"accepts on {PORT}",
    ),
    "serves, and a thread reads who has not accepted": (
        python(
            f"{CLIENT}t = socket.create_server(('127.0.0.1', 0))\n"
            "c = socket.create_connection(t.getsockname())\n"
            "threading.Thread(target=c.recv, args=(1,)).start()\n"
            "s.accept()"
        ),
        rf"a thread reads {PORT}, which has not accepted the connection \(fd \d+\)",
    ),
    "serves, and a thread reads a path": (
        python(
            "s = socket.socket(socket.AF_UNIX); s.bind('sock1'); s.listen()\n"
            "if os.fork() == 0: a = s.accept(); time.sleep(1000)\n"
            "c = socket.socket(socket.AF_UNIX); c.connect('sock1')\n"
            "threading.Thread(target=c.recv, args=(1,)).start()\n"
            "socket.create_server(('127.0.0.1', 0)).accept()"
        ),
        r"a thread reads sock1 \(fd \d+\)",
    ),
    "serves at a path, and a thread waits for a client": (
        python(
            "s = socket.socket(socket.AF_UNIX); s.bind('sock2'); s.listen()\n"
            "if os.fork() == 0:\n"
            "    c = socket.socket(socket.AF_UNIX); c.connect('sock2'); time.sleep(1000)\n"
            "a, _ = s.accept()\n"
            "threading.Thread(target=a.recv, args=(1,)).start()\n"
            "s.accept()"
        ),
        r"accepts on sock2",
    ),
    "serves, and a thread asks by UDP": (
        python(
            "u = socket.socket(type=socket.SOCK_DGRAM); u.bind(('127.0.0.1', 0))\n"
            "c = socket.socket(type=socket.SOCK_DGRAM); c.connect(u.getsockname())\n"
            "threading.Thread(target=c.recv, args=(1,)).start()\n"
            "socket.create_server(('127.0.0.1', 0)).accept()"
        ),
        rf"a thread reads UDP {PORT} \(fd \d+\)",
    ),
    "serves, and a thread serves UDP": (
        python(
            "u = socket.socket(type=socket.SOCK_DGRAM); u.bind(('127.0.0.1', 0))\n"
            "threading.Thread(target=u.recv, args=(1,)).start()\n"
            "socket.create_server(('127.0.0.1', 0)).accept()"
        ),
        rf"accepts on {PORT}",
    ),
    "serves, and threads wait for a child and a pipe": (
        python(
            "s = socket.create_server(('127.0.0.1', 0)); r, w = os.pipe()\n"
            "child = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
            "threading.Thread(target=child.wait).start()\n"
            "threading.Thread(target=os.read, args=(r, 1)).start()\n"
            "s.accept()"
        ),
        rf"accepts on {PORT}",
    ),
    "reads a pair that it has": (
        python("a, b = socket.socketpair(); a.recv(1)"),
        r"reads a socket whose other end it has itself \(fd \d+\)",
    ),
    "reads a pair of which a child has one": (
        python(
            "a, b = socket.socketpair()\n"
            "if os.fork(): b.close(); a.recv(1)\n"
            "else: a.close(); time.sleep(1000)"
        ),
        r"reads a socket \(fd \d+\)",
    ),
    "accepts on a path": (
        python("s = socket.socket(socket.AF_UNIX); s.bind('sock'); s.listen(); s.accept()"),
        r"accepts on sock",
    ),
    "reads UDP": (
        python("s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0)); s.recv(1)"),
        rf"reads UDP {PORT} \(fd \d+\)",
    ),
    # Locks.
    "waits for its own lock": (
        python("lock = threading.Lock(); lock.acquire(); lock.acquire()"),
        r"waits for a lock that only it can release \(futex\)",
    ),
    "waits for a lock with a timeout": (
        python("threading.Event().wait(1000)"),
        r"waits for a lock \(futex\)",
    ),
    "waits for what the handler of a signal does": (
        python(
            "e = threading.Event(); signal.signal(signal.SIGUSR1, lambda *_: e.set()); e.wait()"
        ),
        r"waits for a lock \(futex\)",
    ),
    "waits for two threads in a deadlock": (
        python(
            "a, b, met = threading.Lock(), threading.Lock(), threading.Barrier(2)\n"
            "def take(one, other):\n"
            " with one:\n"
            "  met.wait()\n"
            "  with other: pass\n"
            "threads = [threading.Thread(target=take, args=x) for x in ((a, b), (b, a))]\n"
            "for t in threads: t.start()\n"
            "for t in threads: t.join()"
        ),
        r"waits for locks in all 3 threads \(futex\)",
    ),
    "joins a thread that accepts": (
        python(
            "s = socket.create_server(('127.0.0.1', 0))\n"
            "t = threading.Thread(target=s.accept); t.start(); t.join()"
        ),
        rf"a thread accepts on {PORT}",
    ),
    "flocks what another has": (
        python(
            "f = open('lock1', 'w')\n"
            "if os.fork() == 0:\n"
            "    fcntl.flock(f, fcntl.LOCK_EX)\n"
            "    os._exit(0)\n"  # which leaves the lock to the file, and so to its parent
            "os.wait()\n"
            "fcntl.flock(open('lock1'), fcntl.LOCK_EX)"
        ),
        r"waits for a lock on /\S+/lock1 \(fd \d+\)",
    ),
    "flocks what it has itself": (
        python(
            "a, b = open('lock2', 'w'), open('lock2'); fcntl.flock(a, fcntl.LOCK_EX)\n"
            "fcntl.flock(b, fcntl.LOCK_EX)"
        ),
        r"waits for a lock on /\S+/lock2 that it holds itself \(fd \d+\)",
    ),
    "locks other bytes than it has itself": (
        python(
            "f = open('lock4', 'w'); r, w = os.pipe()\n"
            "if os.fork():\n"
            "    os.read(r, 1); fcntl.lockf(f, fcntl.LOCK_EX, 9)\n"
            "    fcntl.lockf(f, fcntl.LOCK_EX, 9, 100)\n"
            "else: fcntl.lockf(f, fcntl.LOCK_EX, 9, 100); os.write(w, b'x'); time.sleep(1000)"
        ),
        r"waits for a lock on /\S+/lock4 that pid \d+ holds \(fd \d+\)",
    ),
    "locks what its child has": (
        python(
            "f = open('lock3', 'w'); r, w = os.pipe()\n"
            "if os.fork(): os.read(r, 1); fcntl.lockf(f, fcntl.LOCK_EX)\n"
            "else: fcntl.lockf(f, fcntl.LOCK_EX); os.write(w, b'x'); time.sleep(1000)"
        ),
        r"waits for a lock on /\S+/lock3 that pid \d+ holds \(fd \d+\)",
    ),
    "waits in an event loop for a thread": (
        python(ASYNC.format("await asyncio.to_thread(signal.pause)")),
        r"a thread waits for a signal",
    ),
    "waits in an event loop for a thread, with a timeout": (
        python(
            "r, w = os.pipe()\n"
            + ASYNC.format("await asyncio.wait_for(asyncio.to_thread(os.read, r, 1), 1000)")
        ),
        r"a thread reads a pipe that only it writes \(fd \d+\)",
    ),
    # Children.
    "waits for a child": (sh("sleep 1000; :"), r"waits for sleep \(pid \d+\), which sleeps"),
    "waits for a child of a child": (
        bash("bash --norc -c 'sleep 1000; :'; :"),
        r"waits for sleep \(pid \d+\), which sleeps",
    ),
    "runs a child": (
        python("subprocess.run(['sleep', '1000'])"),
        r"waits for sleep \(pid \d+\), which sleeps",
    ),
    "waits for a child by timeout": (
        ["timeout", "1000", *python("socket.create_server(('127.0.0.1', 0)).accept()")],
        rf"waits for \S+ \(pid \d+\), which accepts on {PORT}",
    ),
    "waits for two children": (
        bash("sleep 1000 & sleep 1001 & wait"),
        r"waits for pids \d+, \d+",
    ),
    "waits for a pipeline": (
        sh("sleep 1000 | cat | cat; :"),
        r"waits for sleep \(pid \d+\), which sleeps",
    ),
    "waits for a pipeline whose reader polls": (
        sh(f"sleep 1000 | {shlex.join(python('select.select([0], [], [])'))}; :"),
        r"waits for sleep \(pid \d+\), which sleeps",
    ),
    "waits for a reader of a pipeline": (
        sh("cat /dev/zero | sleep 1000; :"),
        r"waits for sleep \(pid \d+\), which sleeps",
    ),
    "waits for one of two children": (
        sh(f"sleep 1000 & {shlex.join(python('r, w = os.pipe(); os.read(r, 1)'))}; :"),
        r"waits for pids \d+, \d+",
    ),
    "waits in an event loop for a child": (
        python(LOOP_WITH_CHILD.format([SLEEP], [])),
        r"waits for sleep \(pid \d+\), which sleeps",
    ),
    "waits in an event loop for a child that is stuck": (
        python(LOOP_WITH_CHILD.format([STUCK], [])),
        r"waits for \S+ \(pid \d+\), which reads a pipe that only it writes \(fd \d+\)",
    ),
    "waits in an event loop for two children": (
        python(LOOP_WITH_CHILD.format([SLEEP, STUCK], [])),
        r"waits for pids \d+, \d+",
    ),
    "reads a server in an event loop, beside a child": (
        python(LOOP_WITH_CHILD.format([SLEEP], SERVER)),
        rf"reads {PORT} \(fd \d+\) or waits for sleep \(pid \d+\), which sleeps",
    ),
    "reads a server in an event loop, beside a child that is stuck": (
        python(LOOP_WITH_CHILD.format([STUCK], SERVER)),
        (
            rf"reads {PORT} \(fd \d+\) or waits for \S+ \(pid \d+\),"
            r" which reads a pipe that only it writes \(fd \d+\)"
        ),
    ),
    "waits in an event loop without children": (
        python(LOOP_WITH_CHILD.format([], [])),
        r"waits for an event of its own",
    ),
    "waits for a pidfd": (
        python(
            "c = subprocess.Popen(['sleep', '1000']); p = select.poll()\n"
            "p.register(os.pidfd_open(c.pid), 1); p.poll()"
        ),
        r"waits for pid \d+",
    ),
    # Time, signals and events.
    "sleeps": (["sleep", "1000"], r"sleeps"),
    "sleeps in Python": (python("time.sleep(1000)"), r"sleeps"),
    "sleeps by select": (python("select.select([], [], [], 1000)"), r"sleeps"),
    "sleeps in an event loop": (python(ASYNC.format("await asyncio.sleep(1000)")), r"sleeps"),
    "awaits what never comes in an event loop": (
        python(ASYNC.format("await asyncio.Event().wait()")),
        r"waits for an event of its own",
    ),
    "pauses": (python("signal.pause()"), r"waits for a signal"),
    "waits for a signal": (
        python("signal.sigwait([signal.SIGUSR1])"),
        r"waits for a signal",
    ),
    "is stopped": (sh("kill -STOP $$; :"), r"is stopped"),
    "is stopped as a child": (
        sh("sh -c 'kill -STOP $$'; :"),
        r"waits for sh \(pid \d+\), which is stopped",
    ),
    "follows a file": (sh("touch log; exec tail -f log"), r"waits for file changes|sleeps"),
}

# Those that merely wait: time, a signal, a request or a change ends it, as is usual.
USUAL = {
    *("selects a pipe that a child has", "communicates with a child"),
    "reads what a child does not write that has a group of its own",
    "reads what a program in front of another one does not write",
    *("accepts", "accepts on all addresses", "accepts on all addresses of both kinds"),
    *("serves HTTP", "serves in an event loop", "accepts on a path", "reads UDP"),
    "waits for all events of a pipe and a listener",
    "selects a listener, and its own pipe twice",
    *("serves, and a thread waits for a client", "serves, and a thread serves UDP"),
    "serves, and a thread selects a server and a client",
    "serves at a path, and a thread waits for a client",
    "serves, and threads wait for a child and a pipe",
    *("joins a thread that accepts", "waits in an event loop for a thread"),
    *("waits for a child", "waits for a child of a child", "runs a child"),
    *("waits for a child by timeout", "waits for two children", "waits for one of two children"),
    *("waits for a pipeline", "waits for a pipeline whose reader polls"),
    *("waits for a reader of a pipeline", "waits for a pidfd"),
    "reads a pair of which a child has one",
    *("waits in an event loop for a child", "waits in an event loop for two children"),
    "reads a server in an event loop, beside a child",
    *("sleeps", "sleeps in Python", "sleeps by select", "sleeps in an event loop"),
    *("pauses", "waits for a signal", "follows a file"),
}

READY = "open('ready', 'w').close()\n"
LOOP = READY + "while True: pass"
# What runs, or is not clear.
UNBLOCKED = {
    "waits for a process group": python(
        f"{READY}os.fork() or signal.pause()\nos.waitid(os.P_PGID, os.getpgrp(), os.WEXITED)"
    ),
    "polls for a hang-up": python(
        READY + "r, w = os.pipe(); p = select.poll(); p.register(r, 0); p.poll()"
    ),
    "selects for urgent data": python(READY + "s, c, a = pair(); select.select([], [], [c])"),
    "runs": python(LOOP),
    "runs in a thread": python(f"threading.Thread(target=lambda: exec({LOOP!r})).start()"),
    "runs in a child": ["sh", "-c", f"{shlex.join(python(LOOP))}; :"],
    "runs in one of two children": bash(f"sleep 1000 & {shlex.join(python(LOOP))} & wait"),
    "runs in a child with a group of its own": ["timeout", "1000", *python(LOOP)],
    "runs below a child that waits": sh(
        shlex.join(["timeout", "1000", "sh", "-c", f"{shlex.join(python(LOOP))}; :"]) + "; :"
    ),
    "has more descriptors than are looked at": python(
        "import resource; hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 5000), hard))\n"
        "e = select.epoll(); s = socket.create_server(('127.0.0.1', 0)); e.register(s)\n"
        "for _ in range(2100): os.dup(0)\n" + READY + "e.poll()"
    ),
    "joins two threads that do different things": python(
        "s = socket.create_server(('127.0.0.1', 0))\n"
        "for t in (s.accept, signal.pause): threading.Thread(target=t).start()\n" + READY
    ),
}


def nice(command: list[str]) -> list[str]:
    """Let others have the processor."""
    return ["nice", "-n", "19", *command]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """Start all programs, and return their pids."""
    directory = tmp_path_factory.mktemp("blocking")
    commands = {name: command for name, (command, _) in BLOCKED.items()}
    server = socket.create_server(("127.0.0.1", 0))
    name, value = "MCP_DEBUG_TEST", secrets.token_hex(8)
    env = {**os.environ, "SERVER": str(server.getsockname()[1]), name: value}
    with ExitStack() as stack:
        stack.enter_context(server)
        # Those who read from the server are ended first: at the end of their connection they would
        # end by themselves, and leave their children.
        connections = stack.enter_context(ExitStack())
        started = {}
        for situation, command in commands.items():
            started[situation] = subprocess.Popen(
                command,
                cwd=directory,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            stack.callback(end, started[situation])
        server.settimeout(PATIENCE_S)
        for _ in range(12):
            connections.enter_context(server.accept()[0])
        yield {situation: process.pid for situation, process in started.items()}
    ask_until(lambda: list(marked(f"{name}={value}")), lambda left: left == [])


def end(process: subprocess.Popen[bytes]) -> None:
    below = processes.descendants(process.pid)
    processes.send_signals([process.pid, *below], signal.SIGKILL)
    process.wait()
    if process.stdin:
        process.stdin.close()


def look(pid: int) -> Blockage | None:
    return blocked_on(pid, str, partial(processes.descendants, os.getpid()))


@pytest.mark.parametrize("name", BLOCKED)
def test_program_is_blocked_on(programs: dict[str, int], name: str) -> None:
    pattern = re.compile(BLOCKED[name][1])

    def is_so(blocked: Blockage | None) -> bool:
        return blocked is not None and bool(pattern.fullmatch(blocked.text))

    blocked = ask_until(lambda: look(programs[name]), is_so)

    assert blocked
    assert blocked.is_still_so() or name == "serves HTTP"  # which looks at a clock
    assert str(blocked) == (blocked.text if name in USUAL else f"blocked: {blocked.text}")


def test_other_groups_are_left_out_if_asked(programs: dict[str, int]) -> None:
    pid = programs["reads what a child does not write that has a group of its own"]
    others = partial(processes.descendants, os.getpid())
    blocked = ask_until(lambda: blocked_on(pid, str, others, is_for_group=True), bool)

    assert blocked
    assert re.fullmatch(r"reads a pipe \(fd \d+\) from sleep \(pid \d+\)", blocked.text)
    assert blocked.groups == {pid}


def test_child_that_nobody_is_told_of_is_not_looked_at(programs: dict[str, int]) -> None:
    pid = programs["serves, and threads wait for a child and a pipe"]
    blocked = ask_until(lambda: look(pid), bool)

    assert blocked
    assert blocked.groups == {pid}


@pytest.mark.parametrize(
    "name", ["accepts", "accepts on all addresses of both kinds", "accepts on a path", "reads UDP"]
)
def test_socket_is_found_where_there_are_no_extended_attributes(
    programs: dict[str, int], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> bytes:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(os, "getxattr", refuse)

    test_program_is_blocked_on(programs, name)


@pytest.mark.parametrize("name", UNBLOCKED)
def test_program_that_runs_is_not_blocked(name: str, tmp_path: Path) -> None:
    process = subprocess.Popen(
        nice(UNBLOCKED[name]), cwd=tmp_path, stdin=subprocess.DEVNULL, start_new_session=True
    )
    try:
        wait_until((tmp_path / "ready").exists)
        seen = []
        for _ in range(LOOKS):
            seen.append(look(process.pid))
            time.sleep(LOOK_S)
        assert not any(seen)
    finally:
        end(process)


def test_event_loop_beside_a_process_that_hides_its_files_is_known(
    programs: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = programs["sleeps"]
    scandir = os.scandir

    def refuse(path: str) -> Any:  # noqa: ANN401  what os.scandir returns
        if path == f"/proc/{hidden}/fd":
            raise PermissionError
        return scandir(path)

    def looked() -> Blockage | None:
        return blocked_on(pid, str, lambda: [pid, hidden])

    pid = programs["selects a listener, and its own pipe twice"]
    ask_until(looked, bool)
    monkeypatch.setattr(os, "scandir", refuse)
    blocked = looked()
    assert blocked
    assert blocked.text.startswith("accepts on ")
    assert "pipe" not in blocked.text


def test_look_reads_a_bounded_number_of_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "import resource; hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 5000), hard))\n"
        "r, w = os.pipe(); pairs = [os.pipe() for _ in range(400)]\n"
        "for _ in range(4): os.fork()\n"
        "open('ready', 'a').write('x'); select.select([r, *(r for r, _ in pairs[:200])], [], [])"
    )
    process = subprocess.Popen(python(program), cwd=tmp_path, start_new_session=True)
    looks: list[object] = []
    stat = os.stat

    def counted(path: Any, **flags: Any) -> os.stat_result:  # noqa: ANN401  as os.stat takes
        looks.append(path)
        return stat(path, **flags)

    def asleep() -> bool:
        below = processes.descendants(process.pid)
        return len(below) == 15 and all(processes.is_asleep(pid, str(pid)) for pid in below)

    try:
        wait_until(asleep)
        monkeypatch.setattr(os, "stat", counted)
        blocked = look(process.pid)
    finally:
        monkeypatch.undo()
        end(process)
    assert blocked is None
    assert len(looks) < 5000
