"""The truths that a terminal for agents has to hold, each a sentence and a way to try it."""

import os
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hosts import NoHostError, ssh_host

from .tools import KEYS, NotOfferedError, Ran, Tool, until

_PROGRAMS = Path(__file__).with_name("programs")
_PYTHON = shlex.quote(sys.executable)
# What has not come until then does not come.
_PATIENCE_S = float(os.environ.get("COMPARE_PATIENCE_S", "6"))


class BrokenTruthError(Exception):
    """What was seen instead."""


@dataclass(frozen=True)
class Trial:
    """One tool, and a directory for one truth."""

    tool: Tool
    home: Path

    def path(self, name: str) -> Path:
        """Return a path in the directory."""
        return self.home / name

    def program(self, name: str, *words: str) -> str:
        """Return the command that starts one of our programs."""
        return shlex.join([sys.executable, str(_PROGRAMS / name), *words])

    def recorder(self, *words: str) -> tuple[str, Path]:
        """Open a terminal whose program writes down what it reads; return it and the file."""
        path = self.path("record")
        terminal = self.tool.open(self.program("record.py", str(path), *words))
        if not until(path.exists, _PATIENCE_S):
            raise BrokenTruthError("the program was not started")
        return terminal, path

    def shell(self) -> str:
        """Open a terminal with a shell at its prompt."""
        terminal = self.tool.open("bash --norc")
        time.sleep(0.5)
        return terminal


@dataclass(frozen=True)
class Truth:
    """A truth.

    Attributes:
        kind: What it is about.
        sentence: What is true.
        look: Tries it. It raises BrokenTruthError with what was seen instead, or NotOfferedError.
        leaves_nothing: Nothing of the tool may be left after that.
        why_not: Returns why it can't be tried on this machine; an empty text if it can.
    """

    kind: str
    sentence: str
    look: Callable[[Trial], None]
    leaves_nothing: bool = False
    why_not: Callable[[], str] = str


TRUTHS: list[Truth] = []


def _truth(
    kind: str,
    sentence: str,
    *,
    leaves_nothing: bool = False,
    why_not: Callable[[], str] = str,
) -> Callable[[Callable[[Trial], None]], Callable[[Trial], None]]:
    def add(look: Callable[[Trial], None]) -> Callable[[Trial], None]:
        TRUTHS.append(Truth(kind, sentence, look, leaves_nothing, why_not))
        return look

    return add


def _check(holds: object, seen: object) -> None:
    if not holds:
        text = seen if isinstance(seen, str) else repr(seen)
        raise BrokenTruthError(text if len(text) <= 200 else f"{text[:100]} ... {text[-90:]}")


# Typing.

_TYPED = {
    "A line that ends with a semicolon arrives intact.": "echo a;",
    "A line that ends with a backslash and a semicolon arrives intact.": "find . -exec true {} \\;",
    "A line that begins with a dash arrives intact.": "-l --help",
    "Unbalanced quotes arrive intact.": "don't say \"it",
    "Dollar signs, backticks, ! and % arrive intact.": "$HOME `id` !! %d #{pane_id}",
    "Accents, ideographs and emoji arrive intact.": "naïve 日本語 🙂",
    "The name of a key can be typed as text.": "Enter",
    "A line with blanks at both ends arrives intact.": "  indented  ",
    "A line that begins with a tilde and a hash sign arrives intact.": "~#x",
}


def _arrives(text: str, trial: Trial) -> None:
    terminal, path = trial.recorder()
    trial.tool.enter(terminal, text)
    until(lambda: b"\n" in path.read_bytes(), _PATIENCE_S)
    arrived = path.read_bytes().decode(errors="replace")
    _check(arrived == f"{text}\n", arrived)


for _sentence, _text in _TYPED.items():
    TRUTHS.append(Truth("typing", _sentence, partial(_arrives, _text)))


@_truth("typing", "Several lines in one call arrive in order.")
def _several_lines(trial: Trial) -> None:
    terminal, path = trial.recorder()
    lines = [f"line {number}" for number in range(20)]
    trial.tool.enter(terminal, *lines)
    until(lambda: path.read_bytes().count(b"\n") == len(lines), _PATIENCE_S)
    _check(path.read_text().split("\n")[:-1] == lines, path.read_text())


@_truth("typing", "16 kB of text in one call arrive, byte for byte.")
def _large_text(trial: Trial) -> None:
    terminal, path = trial.recorder("raw")
    text = "".join(f"{number:07d}\t" for number in range(2000))
    trial.tool.type(terminal, text)
    until(lambda: len(path.read_bytes()) >= len(text), _PATIENCE_S)
    arrived = path.read_text()
    _check(arrived == text, f"{len(arrived)} of {len(text)} bytes: {arrived[:40]!r}")


@_truth("typing", "A line of 3,000 characters reaches a shell's line editor.")
def _long_line(trial: Trial) -> None:
    shell, path = trial.shell(), trial.path("count")
    text = "x" * 3000
    trial.tool.enter(shell, f"printf %s {text} | wc -c >{path}")
    until(lambda: path.exists() and bool(path.read_text()), _PATIENCE_S)
    _check(path.exists() and path.read_text().strip() == "3000", "the shell did not get it whole")


@_truth("typing", "An arrow key is sent in the mode that the program has set.")
def _application_mode(trial: Trial) -> None:
    terminal, path = trial.recorder("raw", "\\e[?1h")
    time.sleep(0.3)
    trial.tool.press(terminal, "Up")
    until(lambda: bool(path.read_bytes()), _PATIENCE_S)
    _check(path.read_bytes() == b"\x1bOA", path.read_bytes())


@_truth("typing", "A function key is sent as terminals send it.")
def _function_key(trial: Trial) -> None:
    terminal, path = trial.recorder("raw")
    trial.tool.press(terminal, "F5")
    until(lambda: bool(path.read_bytes()), _PATIENCE_S)
    _check(path.read_bytes() == KEYS["F5"].encode(), path.read_bytes())


@_truth("typing", "C-d ends a program's input.")
def _end_of_input(trial: Trial) -> None:
    path = trial.path("ended")
    terminal = trial.tool.open(f"sh -c 'cat >/dev/null; touch {path}; sleep 600'")
    trial.tool.enter(terminal, "line")
    time.sleep(0.3)
    trial.tool.press(terminal, "C-d")
    _check(until(path.exists, _PATIENCE_S), "the program still reads")


@_truth("typing", "C-c interrupts a program that hasn't read earlier input.")
def _interrupt(trial: Trial) -> None:
    path = trial.path("interrupted")
    script = f"trap 'touch {path}; exit' INT; while :; do sleep 0.1; done"
    terminal = trial.tool.open(f"sh -c {shlex.quote(script)}")
    time.sleep(0.5)
    trial.tool.enter(terminal, "not read", "nor this")
    trial.tool.press(terminal, "C-c")
    _check(until(path.exists, _PATIENCE_S), "the program was not interrupted")


@_truth(
    "typing",
    "A line is submitted by a text box that treats text and Enter arriving together as a paste.",
)
def _text_box(trial: Trial) -> None:
    path = trial.path("submitted")
    terminal = trial.tool.open(trial.program("box.py", str(path)))
    _check(until(path.exists, _PATIENCE_S), "the program was not started")
    line = "look at the last commit"
    trial.tool.submit(terminal, line)
    until(lambda: bool(path.read_text()), _PATIENCE_S)
    _check(path.read_text() == f"{line}\n", path.read_text() or "it was not submitted")


# Steps.


@_truth(
    "steps",
    "An answer sent in one call with the command arrives, even if the prompt drops earlier input.",
)
def _answer_to_a_prompt(trial: Trial) -> None:
    shell, path = trial.shell(), trial.path("answer")
    trial.tool.enter(shell, trial.program("ask.py", str(path)), "Ada")
    until(path.exists, _PATIENCE_S)
    _check(path.exists() and path.read_text() == "Ada\n", "the answer was lost")


@_truth("steps", "A password sent in one call with the command isn't shown.")
def _early_password(trial: Trial) -> None:
    shell = trial.shell()
    trial.tool.enter(shell, "sleep 0.7; read -rs word; echo got ${#word}", "s3cret!")
    until(lambda: "got 7" in trial.tool.read(shell), _PATIENCE_S)
    seen = trial.tool.read(shell)
    _check("got 7" in seen, seen)
    _check("s3cret!" not in seen, "the password is on the screen")


@_truth("steps", "A line typed for the next program isn't read by the current one.")
def _line_for_the_next(trial: Trial) -> None:
    shell, path = trial.shell(), trial.path("record")
    first = f"{_PYTHON} -c 'import time, sys, select; time.sleep(0.7); "
    first += "select.select([0], [], [], 0)[0] and sys.stdin.readline()'"
    trial.tool.enter(shell, first, f"echo second >{path}")
    _check(until(path.exists, _PATIENCE_S), "the first program took the line")


# Starting and ending.


@_truth("starting", "A command with quotes, tabs, line feeds and semicolons starts unchanged.")
def _command_intact(trial: Trial) -> None:
    path = trial.path("words")
    trial.tool.open(f"printf '%s|' 'a\tb' \"c  d\" 'e;' 'f\ng' '#{{x}}' >{path}; sleep 600")
    until(lambda: path.exists() and path.read_text().count("|") == 5, _PATIENCE_S)
    seen = path.read_text() if path.exists() else "nothing was started"
    _check(seen == "a\tb|c  d|e;|f\ng|#{x}|", seen)


@_truth("ending", "The last line of a program that ends at once can be read.")
def _last_line(trial: Trial) -> None:
    terminal = trial.tool.open("sh -c 'echo last words; exit 3'")
    _check("last words" in trial.tool.read(terminal), "it is gone")


def _ending(trial: Trial, command: str) -> str:
    """Return what the tool says of how a command ended."""
    terminal = trial.tool.open(command)
    seen: list[str] = []

    def is_told() -> bool:
        seen.append(trial.tool.ending(terminal))
        return bool(seen[-1])

    until(is_told, _PATIENCE_S)
    return seen[-1] or "nothing"


@_truth("ending", "You learn a program's exit code.")
def _exit_code(trial: Trial) -> None:
    seen = _ending(trial, "bash -c 'sleep 0.2; exit 3'")
    _check(seen == "3", seen)


@_truth("ending", "You learn which signal ended a program.")
def _signal(trial: Trial) -> None:
    seen = _ending(trial, "bash -c 'sleep 0.2; kill -SEGV $$'")
    _check(seen in ("11", "-11", "139", "SIGSEGV", "SEGV"), seen)


@_truth("ending", "When a program has ended, you learn what it left running.")
def _left_running(trial: Trial) -> None:
    script, path = trial.path("start.sh"), trial.path("pid")
    # It stays when the terminal's first process ends, however soon that is.
    script.write_text(f"trap '' HUP\nsleep 600 >/dev/null 2>&1 &\necho $! >{path}\n")
    seen = trial.tool.left_by(f"sh {script}")
    _check(until(path.exists, _PATIENCE_S), "the program was not started")
    pid = path.read_text().strip()
    _check(_alive([pid]), "it was ended")
    _check(re.search(rf"\b{pid}\b.*\bsleep|\bsleep\b.*\b{pid}\b", seen), seen)
    seen = trial.tool.left_by("true")
    _check(not re.search(rf"\b{pid}\b", seen), f"of another terminal: {seen}")


# Reading.


@_truth("reading", "After 20,000 lines of output, all of them can be read.")
def _many_lines(trial: Trial) -> None:
    terminal = trial.tool.open("seq 20000; sleep 600")
    until(lambda: "20000" in trial.tool.read(terminal), _PATIENCE_S)
    lines = trial.tool.read(terminal).split("\n")
    missing = set(map(str, range(1, 20001))) - set(lines)
    _check(not missing, f"{len(missing)} lines are missing")


@_truth("reading", "After 20 MB of output, the first line can still be read.")
def _much_output(trial: Trial) -> None:
    terminal = trial.tool.open(
        "echo first line; yes 'a line of 39 letters, again and again' | "
        "head -n 520000; echo all; sleep 600"
    )
    until(lambda: trial.tool.read(terminal).endswith("all"), 30.0, 1.0)
    _check("first line" in trial.tool.read(terminal), "it is gone")


@_truth("reading", "A line longer than the terminal is read as one line.")
def _wrapped_line(trial: Trial) -> None:
    text = "0123456789" * 50
    terminal = trial.tool.open("echo begin; printf '0123456789%.0s' $(seq 50); echo; sleep 600")
    time.sleep(1.0)
    _check(text in trial.tool.read(terminal).split("\n"), trial.tool.read(terminal))


@_truth("reading", "Blank lines and accents, ideographs and emoji are read as printed.")
def _text_intact(trial: Trial) -> None:
    text = "one\n\n\nnaïve 日本語 🙂 end"
    trial.path("text").write_text(f"{text}\n")
    terminal = trial.tool.open(f"cat {trial.path('text')}; sleep 600")
    until(lambda: "end" in trial.tool.read(terminal), _PATIENCE_S)
    _check(text in trial.tool.read(terminal), trial.tool.read(terminal))


@_truth("reading", "A progress bar is read as one line.")
def _progress_bar(trial: Trial) -> None:
    bar = 'for i in $(seq 1 100); do printf "\\rprogress %3d" $i; done; echo; echo all; sleep 600'
    terminal = trial.tool.open(bar)
    until(lambda: "all" in trial.tool.read(terminal).split("\n"), _PATIENCE_S)
    seen = trial.tool.read(terminal)
    after = seen[seen.rfind("progress   1") :] if "progress   1" in seen else seen
    _check("progress 100" in seen and after.count("\rprogress") <= 1, repr(seen))


@_truth("reading", "Colours leave no escape codes in the text.")
def _colours(trial: Trial) -> None:
    path = trial.path("colours.sh")
    path.write_text("printf '\\033[1;31mred\\033[0m \\033]0;title\\007plain\\n'\nsleep 600\n")
    terminal = trial.tool.open(f"bash {path}")
    until(lambda: "plain" in trial.tool.read(terminal), _PATIENCE_S)
    _check("red plain" in trial.tool.read(terminal).split("\n"), repr(trial.tool.read(terminal)))


@_truth("reading", "The screen of a full-screen program is read as a person sees it.")
def _full_screen(trial: Trial) -> None:
    terminal = trial.tool.open(trial.program("draw.py", "finished"))
    until(lambda: "finished" in trial.tool.screen(terminal), _PATIENCE_S)
    rows = [row.strip() for row in trial.tool.screen(terminal).split("\n")]
    wanted = ["Building", "", "[#####     ] 50 %", "", "finished"]
    begin = rows.index("Building") if "Building" in rows else 0
    _check(rows[begin : begin + 5] == wanted, rows)


# What programs/frames.py draws, with bars between the rows.
_FRAMES = (
    "Jobs: 3        running||  build    done|  deploy   running|  tests    running|||q: quit",
    "Jobs: 2        running||  build    failed||  tests    running||  deploy   waits",
)


@_truth(
    "reading",
    "You read the screen as it is, row by row, without history or earlier frames.",
)
def _screen_as_it_is(trial: Trial) -> None:
    def rows(terminal: str) -> str:
        return "|".join(map(str.rstrip, trial.tool.screen(terminal).rstrip().split("\n")))

    def shows(terminal: str, frame: str) -> bool:
        return rows(terminal) == frame

    for buffer in ("main", "alternate"):
        terminal = trial.tool.open(trial.program("frames.py", buffer))
        for frame in _FRAMES:
            until(partial(shows, terminal, frame), _PATIENCE_S, 0.1)
            _check(shows(terminal, frame), f"{buffer}: {rows(terminal)}")
            trial.tool.press(terminal, "Enter")


@_truth("reading", "The output of two terminals can be read in one text, in the order of printing.")
def _in_turn(trial: Trial) -> None:
    turns = trial.path("turns")
    turns.mkdir()
    (turns / "left-0").touch()
    commands = [trial.program("turns.py", name, str(turns)) for name in ("left", "right")]
    seen = trial.tool.together(commands, (turns / "left-5").exists)
    wanted = [f"{name} {number}" for number in range(5) for name in ("left", "right")]
    _check(re.findall(r"(?:left|right) \d+", seen) == wanted, seen)


@_truth("reading", "After a full-screen program ends, the output from before it can be read.")
def _before_the_alternate_screen(trial: Trial) -> None:
    path = trial.path("full.sh")
    path.write_text(
        "echo before\nprintf '\\033[?1049h\\033[2Jinside'\nsleep 0.3\n"
        "printf '\\033[?1049l'\necho after\nsleep 600\n"
    )
    terminal = trial.tool.open(f"bash {path}")
    until(lambda: "after" in trial.tool.read(terminal), _PATIENCE_S)
    seen = trial.tool.read(terminal)
    _check("before" in seen.split("\n") and "after" in seen.split("\n"), repr(seen))


@_truth("reading", "Line-drawing characters are read as a person sees them.")
def _line_drawing(trial: Trial) -> None:
    path = trial.path("box.sh")
    path.write_text("printf '\\033(0lqqk\\033(B corner\\n'\nsleep 600\n")
    terminal = trial.tool.open(f"bash {path}")
    until(lambda: "corner" in trial.tool.read(terminal), _PATIENCE_S)
    seen = trial.tool.read(terminal)
    _check("┌──┐ corner" in seen, seen)


# Waiting.


@_truth("waiting", "The echo of a command doesn't end a wait for the command's output.")
def _echo(trial: Trial) -> None:
    shell, path = trial.shell(), trial.path("done")
    trial.tool.enter(shell, f"sleep 1.5; touch {path}; echo READY")
    matched = trial.tool.wait(shell, "READY", _PATIENCE_S)
    _check(matched, "it did not match at all")
    _check(path.exists(), "the echo matched")


@_truth("waiting", "Old output doesn't end a wait for the answer to newly typed text.")
def _old_output(trial: Trial) -> None:
    path = trial.path("done")
    script = f"echo READY; while read -r line; do sleep 1.5; touch {path}; echo READY; done"
    terminal = trial.tool.open(f"sh -c {shlex.quote(script)}")
    time.sleep(0.5)
    trial.tool.enter(terminal, "go")
    matched = trial.tool.wait(terminal, "READY", _PATIENCE_S)
    _check(matched, "it did not match at all")
    _check(path.exists(), "the old output matched")


@_truth("waiting", "A wait finds a line even if 30,000 lines have followed it.")
def _scrolled_away(trial: Trial) -> None:
    terminal = trial.tool.open("sleep 1; echo NEED''LE; seq 30000; sleep 600")
    _check(trial.tool.wait(terminal, "NEEDLE", _PATIENCE_S), "it was missed")


@_truth("waiting", "A wait finds a line that the program printed in two parts.")
def _two_writes(trial: Trial) -> None:
    terminal = trial.tool.open("sh -c 'printf REA; sleep 1; echo DY; sleep 600'")
    _check(trial.tool.wait(terminal, "READY", _PATIENCE_S), "it was missed")


@_truth("waiting", "A wait for a line ends when the program ends.")
def _end_of_program(trial: Trial) -> None:
    terminal = trial.tool.open("sh -c 'sleep 1; exit 1'")
    begin = time.monotonic()
    matched = trial.tool.wait(terminal, "NEVER", 8.0)
    waited_s = time.monotonic() - begin
    _check(not matched and waited_s < 6.0, f"it waited {waited_s:.0f} s of 8")


@_truth("waiting", "A wait for a line ends at a password prompt.")
def _password_ends_the_wait(trial: Trial) -> None:
    script = "sleep 0.5; read -rsp 'Password: ' word; sleep 600"
    terminal = trial.tool.open(f"bash -c {shlex.quote(script)}")
    begin = time.monotonic()
    trial.tool.wait(terminal, "NEVER", 8.0)
    waited_s = time.monotonic() - begin
    _check(waited_s < 6.0, f"it waited {waited_s:.0f} s of 8")


@_truth("waiting", "A wait finds text that a full-screen program draws.")
def _wait_for_a_screen(trial: Trial) -> None:
    terminal = trial.tool.open(trial.program("draw.py", "finished"))
    _check(trial.tool.wait(terminal, "fin[a-z]+ed", _PATIENCE_S), "it was missed")


@_truth("waiting", "A pattern with catastrophic backtracking doesn't hang the tool.")
def _catastrophic_pattern(trial: Trial) -> None:
    if not trial.tool.has_wait:
        raise NotOfferedError
    terminal = trial.tool.open(f"echo {'a' * 40}b; sleep 600")
    begin = time.monotonic()
    trial.tool.wait(terminal, "(a+)+$", 2.0)
    waited_s = time.monotonic() - begin
    _check(waited_s < 5.0, f"it took {waited_s:.0f} s instead of 2")


# What a program does.


def _awaits(command: str, wanted: str, trial: Trial) -> None:
    terminal = trial.tool.open(command)
    until(lambda: trial.tool.awaits(terminal) == wanted, _PATIENCE_S, 0.1)
    time.sleep(0.3)
    seen = trial.tool.awaits(terminal)
    _check(seen == wanted, f"told: {seen or 'nothing'}")


for _sentence, _command, _wanted in (
    ("You learn that a program waits for a line of input.", "read -r line; sleep 600", "input"),
    (
        "You learn that a program waits for a password.",
        "read -rsp 'PIN ' word; sleep 600",
        "hidden input",
    ),
    ("You learn that a shell is at its prompt.", "bash --norc", "keys"),
    ("A program that computes isn't said to wait for input.", "while :; do :; done", ""),
    ("A program that sleeps isn't said to wait for input.", "sleep 600", ""),
):
    TRUTHS.append(Truth("state", _sentence, partial(_awaits, _command, _wanted)))


@_truth("state", "You learn which lock a program waits for, and who holds it.")
def _lock(trial: Trial) -> None:
    path, pids = trial.path("lock"), trial.path("pids")
    trial.tool.open(f"flock {path} sh -c 'echo $PPID $$ >{pids}; sleep 600'")
    until(lambda: pids.exists() and bool(pids.read_text()), _PATIENCE_S)
    seen = trial.tool.blocked_on(trial.tool.open(f"flock {path} true"))
    has_holder = any(re.search(rf"\b{pid}\b", seen) for pid in pids.read_text().split())
    _check(str(path) in seen and has_holder, seen)


# Running.


def _ran(trial: Trial, command: str, timeout_s: float = 8.0) -> Ran:
    return trial.tool.run(command, trial.shell(), timeout_s)


def _check_ran(ran: Ran, output: str) -> None:
    """Check the output. No exit code is no exit code other than 0."""
    _check(ran.has_ended and ran.output == output and not ran.exit_code, ran)


def _check_runs(trial: Trial, shell: str, command: str, output: str) -> None:
    _check_ran(trial.tool.run(command, shell), output)


@_truth("running", "You learn a command's output and exit code.")
def _output_and_code(trial: Trial) -> None:
    ran = _ran(trial, "echo out; (exit 7)")
    _check((ran.output, ran.exit_code) == ("out", 7), ran)


@_truth("running", "Output without a final line feed is returned exactly.")
def _no_line_feed(trial: Trial) -> None:
    ran = _ran(trial, "printf 'no line feed'")
    _check_ran(ran, "no line feed")


@_truth("running", "A command with a here-document can be run.")
def _here_document(trial: Trial) -> None:
    ran = _ran(trial, "cat <<'END'\none 'quote\ntwo\nEND")
    _check_ran(ran, "one 'quote\ntwo")


@_truth("running", "An unbalanced quote is an error, and the shell still works.")
def _unbalanced(trial: Trial) -> None:
    shell = trial.shell()
    begin = time.monotonic()
    ran = trial.tool.run("echo 'unbalanced", shell, 4.0)
    _check(ran.has_ended and ran.exit_code != 0 and time.monotonic() - begin < 4.0, ran)
    _check_runs(trial, shell, "echo fine", "fine")


@_truth(
    "running", "A command that reads its input to the end doesn't swallow what the tool types next."
)
def _drains_input(trial: Trial) -> None:
    shell = trial.shell()
    begin = time.monotonic()
    ran = trial.tool.run("cat >/dev/null", shell, 6.0)
    waited_s = time.monotonic() - begin
    _check(not ran.has_ended and waited_s < 5.0, f"{ran} after {waited_s:.0f} s")
    trial.tool.press(shell, "C-d")
    time.sleep(0.5)
    _check_runs(trial, shell, "echo fine", "fine")


@_truth("running", "Running a command that opens a pager returns before the timeout.")
def _pager(trial: Trial) -> None:
    shell = trial.shell()
    begin = time.monotonic()
    trial.tool.run("seq 1000 | less", shell, 10.0)
    waited_s = time.monotonic() - begin
    _check(waited_s < 6.0, f"it took {waited_s:.0f} s of 10")
    trial.tool.press(shell, "q")
    time.sleep(0.5)
    _check_runs(trial, shell, "echo fine", "fine")


@_truth("running", "Directory and variables persist from one run to the next.")
def _state_stays(trial: Trial) -> None:
    shell = trial.shell()
    trial.tool.run("cd /usr; word=kept", shell)
    _check_runs(trial, shell, 'echo "$PWD $word"', "/usr kept")


@_truth("running", "A function of several lines can be defined and called.")
def _function(trial: Trial) -> None:
    shell = trial.shell()
    trial.tool.run("f() {\n  echo one\n  echo two\n}", shell)
    _check_runs(trial, shell, "f", "one\ntwo")


@_truth("running", "With a coloured prompt of two lines, you still get a command's exact output.")
def _odd_prompt(trial: Trial) -> None:
    shell = trial.shell()
    trial.tool.enter(shell, r"PS1='\[\e[32m\]\w\[\e[0m\]\n\$ '")
    time.sleep(0.5)
    _check_runs(trial, shell, "echo out", "out")


@_truth("running", "A command that times out is interrupted, and the shell still works.")
def _timeout(trial: Trial) -> None:
    shell = trial.shell()
    ran = trial.tool.run("sleep 60", shell, 1.5)
    _check(not ran.has_ended, ran)
    _check_runs(trial, shell, "echo fine", "fine")


@_truth("running", "A command meant for a shell isn't typed into another program.")
def _not_a_shell(trial: Trial) -> None:
    terminal, path = trial.recorder()
    try:
        trial.tool.run("rm -rf /tmp/nothing", terminal, 3.0)
    except NotOfferedError:
        raise
    except Exception:  # noqa: BLE001, S110 it was refused, each tool in its own way
        pass
    _check(b"rm -rf" not in path.read_bytes(), "it was typed into the program")


@_truth(
    "running", "Of a command's 20,000 lines of output, you get all or learn that some are left out."
)
def _large_output(trial: Trial) -> None:
    ran = _ran(trial, "seq 20000", 20.0)
    lines = ran.output.split("\n")
    is_whole = set(lines).issuperset(map(str, range(1, 20001)))
    tells = bool(re.search(r"omitted|left out|truncated|more lines|\.\.\.|…", ran.output))
    _check(is_whole or tells, f"{len(lines)} lines, exit code {ran.exit_code}")


def _no_host() -> str:
    """Return why no shell can be reached by ssh here."""
    with tempfile.TemporaryDirectory(prefix="compare-", dir="/tmp") as home:
        try:
            with _host(Path(home), os.environ):
                return ""
        except NoHostError as why:
            return f"{why}."


@contextmanager
def _host(home: Path, env: Mapping[str, str]) -> Iterator[str]:
    """Let a program reach this machine by ssh; yield its path."""
    for name in ("bin", "host"):
        (home / name).mkdir()
    path = f"{home / 'bin'}{os.pathsep}{env['PATH']}"
    with ssh_host(home / "host", home, {**env, "PATH": path}):
        yield str(home / "bin" / "ssh")


@_truth(
    "running",
    "In a shell behind ssh, you learn a command's output and exit code.",
    why_not=_no_host,
)
def _behind_ssh(trial: Trial) -> None:
    rc, path = trial.path("rc"), trial.path("reached")
    rc.write_text(f"touch {path}\n")
    with _host(trial.home, trial.tool.env) as ssh:
        terminal = trial.tool.open(f"{ssh} -t build bash --rcfile {rc}")
        _check(until(path.exists, 30.0), "the shell there was not started")
        time.sleep(0.5)
        ran = trial.tool.run_elsewhere("printf 'one\\ntwo\\n'; (exit 7)", terminal)
        _check((ran.output, ran.exit_code) == ("one\ntwo", 7), ran)


# Ending.


@_truth("ending", "A name selects only the terminal with exactly that name.")
def _exact_name(trial: Trial) -> None:
    path = trial.path("alive")
    script = f"trap 'rm {path}; exit' HUP TERM; touch {path}; while :; do sleep 0.1; done"
    trial.tool.open(f"sh -c {shlex.quote(script)}", "web-2")
    until(path.exists, _PATIENCE_S)
    try:
        trial.tool.end("web")
    except NotOfferedError:
        raise
    except Exception:  # noqa: BLE001, S110 it was refused, each tool in its own way
        pass
    time.sleep(1.5)
    _check(path.exists(), "`web` ended `web-2`")


def _ends_all(trial: Trial, *, kill: bool) -> None:
    path = trial.path("pids")
    terminal = trial.tool.open(trial.program("stubborn.py", str(path)))
    until(lambda: path.exists() and path.read_text().count("\n") == 2, _PATIENCE_S)
    if kill:
        trial.tool.end(terminal)
    else:
        trial.tool.finish()
    pids = path.read_text().split()
    until(lambda: not _alive(pids), 3.0)
    _check(len(pids) == 2 and not _alive(pids), f"{len(_alive(pids))} of 2 processes are left")


def _alive(pids: list[str]) -> list[str]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists() and not _is_zombie(pid)]


def _is_zombie(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


TRUTHS.append(
    Truth(
        "ending",
        "Killing a terminal ends a program that ignores signals, and the daemon it started.",
        partial(_ends_all, kill=True),
    )
)
TRUTHS.append(
    Truth("ending", "Nothing is left running when the tool ends.", partial(_ends_all, kill=False))
)


@_truth("ending", "Nothing is left running when the tool is killed.", leaves_nothing=True)
def _sigkill(trial: Trial) -> None:
    path = trial.path("pids")
    trial.tool.open(trial.program("stubborn.py", str(path)))
    have_started = until(lambda: path.exists() and path.read_text().count("\n") == 2, _PATIENCE_S)
    _check(have_started, "the programs were not started")
    trial.tool.die()


@_truth("cost", "While a program waits, the tool takes no processor time.")
def _idle(trial: Trial) -> None:
    trial.tool.open("cat")
    time.sleep(2.0)
    before = _ticks(trial.tool.env["COMPARE_RUN"])
    time.sleep(4.0)
    taken = _ticks(trial.tool.env["COMPARE_RUN"]) - before
    _check(taken <= 1, f"{taken * 10} ms in 4 s")


def _ticks(mark: str) -> int:
    """Return the processor time of all processes with the mark, in hundredths of a second."""
    total = 0
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if path.name != str(os.getpid()) and mark.encode() in (path / "environ").read_bytes():
                fields = (path / "stat").read_text().rpartition(")")[2].split()
                total += int(fields[11]) + int(fields[12])
        except OSError:
            continue
    return total
