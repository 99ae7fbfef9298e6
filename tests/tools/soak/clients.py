"""Clients that work at random, and know what each answer must be."""

import itertools
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from random import Random
from typing import Any

from people import Person
from wire import Server

# Prints as many numbered lines as it is told to, and goes on counting.
COUNTER = (
    "i=0; while read n; do while [ $n -gt 0 ]; do i=$((i+1)); echo line $i; n=$((n-1)); done; done"
)
# A child that bash, interrupted right after it forked, has left in the foreground for good, waiting
# to be told its process group.
_LEFT_CHILD = re.compile(r"reads a pipe \(fd \d+\) from bash ")
# More than the first page of a capture has.
_MANY_LINES = 3000
# What a line editor, a shell and tmux might take for something else.
_TEXTS = (
    "a;",
    "-l",
    "$HOME `id`",
    "naïve 日本語 🙂",
    "Enter",
    "#{pane_id}",
    "  both  ",
    "!!",
    "\\;",
)


class BrokenModelError(AssertionError):
    """An answer was not what it had to be."""


@dataclass
class Reader:
    """How far a caller has read a counter's lines.

    Attributes:
        caller: Its connection.
        seen: The lines that captures have returned.
        cursor: Where the next capture goes on.
    """

    caller: Server
    seen: int = 0
    cursor: int = 0


@dataclass
class Pane:
    """What is known of a pane.

    Attributes:
        kind: What runs in it.
        readers: Those who read it, each on their own.
        total: The lines that a counter has printed.
        value: What a shell's variable is.
    """

    kind: str
    readers: Sequence[Reader] = ()
    total: int = 0
    value: int = 0


@dataclass
class Client:
    """A client, with panes of its own, in which another caller works, too.

    Args:
        number: Which one it is; part of its panes' names.
        server: Its connection.
        another: That of the other caller.
        random: Decides what it does.
        max_panes: How many panes it has at once.
        verbs: How `tmux-debug` is called, with this environment in this directory.
    """

    number: int
    server: Server
    another: Server
    random: Random
    max_panes: int
    verbs: list[str]
    env: Mapping[str, str]
    cwd: str
    panes: dict[str, Pane] = field(default_factory=dict)
    calls: int = 0
    _names: "itertools.count[int]" = field(default_factory=itertools.count)

    def work(self, steps: int) -> None:
        """Do some things at random, and end all panes.

        Raises:
            BrokenModelError: An answer was wrong.
        """
        for _ in range(steps):
            if not self.panes or (len(self.panes) < self.max_panes and self.random.random() < 0.3):
                self._create()
            else:
                self._use(self.random.choice(list(self.panes)))
        self._check_list()
        for name in list(self.panes):
            self._kill(name)

    def _create(self) -> None:
        name = f"c{self.number}-{next(self._names)}"
        kind = self.random.choice(["shell", "counter", "cat", "short"])
        commands = {
            "shell": "bash --norc",
            "counter": COUNTER,
            "cat": "cat",
            "short": f"echo last of {name}; exit 7",
        }
        result = self._call("create_pane", command=commands[kind], name=name)
        cursor = result["_meta"]["cursor"]
        readers = [Reader(caller, cursor=cursor) for caller in (self.server, self.another)]
        self.panes[name] = Pane(kind, readers)
        if kind == "short":
            # An observation comes at rest, or after a second on a busy machine.
            told = self._call("wait", pane_id=name, since=0, timeout_s=60)
            self._check(told["_meta"]["exit_code"] == 7, told)
            self._check(f"last of {name}" in _texts(told), told)

    def _use(self, name: str) -> None:
        pane = self.panes[name]
        uses: dict[str, list[Callable[[str, Pane], None]]] = {
            "shell": [
                *(self._run, self._run, self._remember, self._interrupt, self._run_by_verb),
                *(self._type_a_secret, self._run_beside_another),
            ],
            "counter": [self._count, self._count, self._read],
            "cat": [self._type, self._type, self._cancel_a_wait, self._take_over],
            "short": [self._refuse, self._capture_last],
        }
        choices = [*uses[pane.kind], self._kill_at_random]
        self.random.choice(choices)(name, pane)

    def _run(self, name: str, pane: Pane) -> None:
        one, other, code = (self.random.randrange(200) for _ in range(3))
        text = self.random.choice(_TEXTS)
        command = f"echo $(({one} * {other})) {_quoted(text)}; (exit {code})"
        result = self._call("run", pane_id=name, command=command, timeout_s=60)
        self._check(result["content"][0]["text"] == f"{one * other} {text}\n", (command, result))
        self._check(result["_meta"]["exit_code"] == code, (command, result))

    def _run_beside_another(self, name: str, pane: Pane) -> None:
        """Have both callers run a command: each gets its own output, if the shell gets to it."""
        ours, others = self.random.randrange(1000), self.random.randrange(1000)
        arguments = {"pane_id": name, "command": f"echo {ours}; (exit 1)", "timeout_s": 60}
        asked = self.server.send("tools/call", name="tmux_run", arguments=arguments)
        command = f"echo {others}; (exit 2)"
        result = self.another.call("run", pane_id=name, command=command, timeout_s=60)
        answer = self.server.read()
        self.calls += 2
        self._check(answer["id"] == asked, answer)
        results = [(answer["result"], ours, 1), (result, others, 2)]
        done = [(ran, *wanted) for ran, *wanted in results if "is busy" not in _texts(ran)]
        self._check(done, results)
        for ran, number, code in done:
            self._check(ran["content"][0]["text"] == f"{number}\n", results)
            self._check(ran["_meta"]["exit_code"] == code, results)

    def _run_by_verb(self, name: str, pane: Pane) -> None:
        number = self.random.randrange(1000)
        words = [*self.verbs, "run", "--pane", name, "--", f"echo verb {number}; (exit 3)"]
        done = subprocess.run(
            words, env=self.env, cwd=self.cwd, capture_output=True, text=True, check=False
        )
        self.calls += 1
        self._check((done.returncode, done.stdout) == (3, f"verb {number}\n"), done)

    def _remember(self, name: str, pane: Pane) -> None:
        added = self.random.randrange(100)
        command = f"total=$((total + {added})); echo $total"
        result = self._call("run", pane_id=name, command=command, timeout_s=60)
        pane.value += added
        self._check(result["content"][0]["text"] == f"{pane.value}\n", result)

    def _interrupt(self, name: str, pane: Pane) -> None:
        result = self._call("run", pane_id=name, command="echo begun; sleep 1000", timeout_s=0.2)
        facts = result["_meta"]
        if _LEFT_CHILD.match(facts.get("blocked_on", "")):
            self._kill(name)
            return
        self._check(facts["reason"] == "timed_out" and facts["exit_code"] == 130, result)

    def _count(self, name: str, pane: Pane) -> None:
        lines = self.random.choice([1, 5, 200, _MANY_LINES])
        pane.total += lines
        last = f"^line {pane.total}$"
        result = self._call(
            "send_keys", pane_id=name, keys=f"{lines}\n", wait_for=last, timeout_s=60
        )
        self._check(result["_meta"]["reason"] == "matched", result)

    def _read(self, name: str, pane: Pane) -> None:
        """Have one of the callers read on; each line comes once, in order."""
        reader = self.random.choice(pane.readers)
        while True:
            self.calls += 1
            result = reader.caller.call("capture_pane", pane_id=name, since=reader.cursor)
            reader.cursor = result["_meta"]["cursor"]
            for number in re.findall(r"^line (\d+)$", _texts(result), re.MULTILINE):
                reader.seen += 1
                self._check(int(number) == reader.seen, (number, pane))
            if not result["_meta"].get("cut_bytes"):
                break
        self._check(reader.seen == pane.total, pane)

    def _type(self, name: str, pane: Pane) -> None:
        text = f"{self.random.choice(_TEXTS).strip()} {self.random.randrange(10**9)}"
        result = self._call("send_keys", pane_id=name, keys=f"{text}\n", literal=True, timeout_s=60)
        # The terminal's echo, and what cat prints.
        self._check(_texts(result).count(text) + _repeated(result) >= 2, (text, result))
        # The other caller has seen nothing of it yet.
        told = self.another.call("wait", pane_id=name, idle_s=0, timeout_s=60)
        self.calls += 1
        self._check(_texts(told).count(text) + _repeated(told) >= 2, (text, told))

    def _cancel_a_wait(self, name: str, pane: Pane) -> None:
        arguments = {"pane_id": name, "pattern": "never", "timeout_s": 1000}
        number = self.server.send("tools/call", name="tmux_wait", arguments=arguments)
        self.server.notify("notifications/cancelled", requestId=number)
        self.calls += 1

    def _take_over(self, name: str, pane: Pane) -> None:
        """Have a person watch the pane, type there and leave."""
        text = f"by hand {self.random.randrange(10**9)}"
        with self._person("attach", "--write", name) as person:
            person.sees("you have the keyboard")
            person.types(f"{text}\r".encode())
            person.sees(text)
            result = self._call("send_keys", pane_id=name, keys="x", fails=True)
            self._check("has the keyboard" in _texts(result), result)
            self._check(person.leaves() == 0, person.seen)
        shown = self._call("wait", pane_id=name, pattern=f"^{text}$", since=0, timeout_s=60)
        self._check(shown["_meta"]["reason"] == "matched", shown)

    def _type_a_secret(self, name: str, pane: Pane) -> None:
        """Have a person type a secret, which no answer contains."""
        number = self.random.randrange(10**9)
        secret = f"hidden-{number}"
        command = f"read -rs word; echo {number} has ${{#word}}"
        result = self._call("run", pane_id=name, command=command, timeout_s=60)
        self._check(result["_meta"]["reason"] == "input", result)
        with self._person("secret", name) as person:
            person.sees("in pane")
            person.types(f"{secret}\r".encode())
            self._check(person.process.wait(60) == 0, person.seen)
        told = self._call(
            "wait", pane_id=name, pattern=f"^{number} has {len(secret)}$", since=0, timeout_s=60
        )
        self._check(told["_meta"]["reason"] == "matched", told)
        shown = self._call("capture_pane", pane_id=name, since=0)
        self._check(secret not in _texts(shown), shown)

    def _person(self, *words: str) -> "closing[Person]":
        self.calls += 1
        return closing(Person([*self.verbs, *words], self.env, self.cwd))

    def _refuse(self, name: str, pane: Pane) -> None:
        result = self._call("send_keys", pane_id=name, keys="x", fails=True)
        self._check("exited with code 7" in _texts(result), result)

    def _capture_last(self, name: str, pane: Pane) -> None:
        result = self._call("capture_pane", pane_id=name)
        self._check(f"last of {name}" in _texts(result), result)

    def _kill_at_random(self, name: str, pane: Pane) -> None:
        if self.random.random() < 0.3:
            self._kill(name)

    def _kill(self, name: str) -> None:
        self._call("kill_pane", pane_id=name)
        del self.panes[name]

    def _check_list(self) -> None:
        """Check that the list has just these panes of ours."""
        rows = self._call("list_panes")["content"][0]["text"]
        listed = set(re.findall(rf'"name":"(c{self.number}-\d+)"', rows))
        self._check(listed == set(self.panes), (listed, set(self.panes)))

    def _call(self, tool: str, *, fails: bool = False, **arguments: Any) -> Any:  # noqa: ANN401
        self.calls += 1
        result = self.server.call(tool, **arguments)
        self._check(bool(result.get("isError")) == fails, (tool, arguments, result))
        return result

    def _check(self, holds: object, seen: object) -> None:
        if not holds:
            raise BrokenModelError(f"client {self.number}, call {self.calls}: {seen}")


def _texts(result: Any) -> str:  # noqa: ANN401
    return "\n".join(block["text"] for block in result["content"])


def _repeated(result: Any) -> int:  # noqa: ANN401
    """Return how many lines were folded into one."""
    return sum(map(int, re.findall(r"line above: (\d+) times", _texts(result))))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
