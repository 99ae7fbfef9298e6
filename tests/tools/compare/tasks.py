"""Broken programs that agents debug, each as a script: what they do, and what they learn then.

- the stories in `tests/stories`,
- nine bugs of debug-gym's mini_nightmare, from its wheel on PyPI (the tenth downloads its data),
- what terminalcp's evaluations "python-repl" and "debug-lldb" ask for, the latter with gdb,
- a build of 20 minutes that asks a question, with seconds for minutes.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stories.scripts import PYTHON, Story, stories
from stories.steps import Find, Run, Send, Start

_PROGRAMS = Path(__file__).with_name("programs")
_WHEEL = "debug-gym==1.3.0"
_SHA256 = "8ddc77ca2cb57fc9062b10f3e100f5e4eb39d07e9442a3dab2a583558f20e207"
_IN_WHEEL = "data/mini_nightmare"
# Where the process that compares has put them.
NIGHTMARES_VARIABLE = "COMPARE_NIGHTMARES"
NIGHTMARES = Path(os.environ[NIGHTMARES_VARIABLE]) if NIGHTMARES_VARIABLE in os.environ else None

# How often an agent looks again by default.
LOOKS = 4


@dataclass(frozen=True)
class Task:
    """A broken program.

    Attributes:
        story: How it is debugged.
        minute_s: How long a minute lasts, for what takes many.
        looks: How often an agent looks again for what it has to learn.
    """

    story: Story
    minute_s: float = 60.0
    looks: int = LOOKS


def tasks(nightmares: Path | None) -> Mapping[str, Task]:
    """Return all tasks that can be tried here, by name.

    Args:
        nightmares: The directory that `downloaded_nightmares` has returned.
    """
    of_nightmares = _nightmares(nightmares) if nightmares else {}
    return {
        **{f"stories: {name}": Task(story) for name, story in stories().items()},
        **{f"mini_nightmare: {name}": Task(story) for name, story in of_nightmares.items()},
        "terminalcp: Python REPL": Task(_repl()),
        **({"terminalcp: a crash in C": Task(_crash_in_c())} if _has_gdb() else {}),
        "build: 20 minutes with a question": Task(_build(), minute_s=1.0, looks=12),
    }


def missing(nightmares: Path | None) -> list[str]:
    """Return what is left out here, each a sentence."""
    return [
        *([] if nightmares else [f"mini_nightmare: {_WHEEL} could not be downloaded."]),
        *([] if _has_gdb() else ["terminalcp: a crash in C: gdb or cc is not installed."]),
    ]


def downloaded_nightmares() -> Path | None:
    """Return the directory of mini_nightmare, downloaded the first time; None without a network."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    home = Path(cache) / "tmux-debug-mcp" / _WHEEL
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent) as directory:
            wheel = _downloaded(Path(directory))
            if wheel is None:
                return None
            with zipfile.ZipFile(wheel) as files:
                members = [name for name in files.namelist() if name.startswith(_IN_WHEEL)]
                files.extractall(Path(directory) / "all", members)
            (Path(directory) / "all").rename(home)
    return home / _IN_WHEEL


def _downloaded(directory: Path) -> Path | None:
    requirements = directory / "requirements"
    requirements.write_text(f"{_WHEEL} --hash=sha256:{_SHA256}\n")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    # It asks for a newer Python than its bugs need.
    which = ["--no-deps", "--only-binary=:all:", "--python-version=3.12"]
    done = subprocess.run(
        [*pip, *which, "--require-hashes", "--requirement", requirements, "--dest", directory],
        check=False,
    )
    return None if done.returncode else next(directory.glob("*.whl"))


def _has_gdb() -> bool:
    return all(map(shutil.which, ("gdb", "cc")))


def _nightmares(home: Path) -> Mapping[str, Story]:
    """Return the stories of the bugs: each is looked at where its code goes wrong."""

    def in_pdb(name: str, line: str, condition: str, looks: Mapping[str, str]) -> Story:
        """Stop before a line of the code, and evaluate expressions."""
        directory = home / name
        code = f"{name}_code.py"
        lines = (directory / code).read_text().split("\n")
        [number] = [n for n, text in enumerate(lines, 1) if text.strip() == line]
        stop = f"b {code}:{number}" + (f", {condition}" if condition else "")
        test = (directory / "test.py").read_text()
        program = ["test.py"] if "unittest.main" in test else ["-m", "pytest", "-qs", "test.py"]
        command = shlex.join([sys.executable, "-m", "pdb", "-c", stop, "-c", "c", *program])
        return Story(
            [
                Start(pane="pdb", command=command, until=r"\(Pdb\)", shows=r"(?m)^-> \w"),
                Send(
                    pane="pdb",
                    keys=[f"{expression}\n" for expression in looks],
                    shows=r"(?s)" + ".*".join(looks.values()),
                ),
            ],
            cwd=str(directory),
        )

    return {
        "config": in_pdb(
            "config",
            "return self._cache[name]",
            "",
            {
                "self._cache[name]._config['host']": "'initial-host'",
                "self._config[name]['host']": "'new-host'",
            },
        ),
        "counter": Story(
            [
                Start(pane="python", command=f"{PYTHON} -q", until=">>>", shows=">>>"),
                Send(
                    pane="python",
                    keys=[
                        "import threading\n",
                        "from counter_code import ThreadSafeCounter, increment_counter\n",
                        "c = ThreadSafeCounter()\n",
                        "run = lambda: increment_counter(c, 50)\n",
                        "threads = [threading.Thread(target=run) for _ in range(10)]\n",
                        "_ = [t.start() for t in threads], [t.join() for t in threads]\n",
                        "c.get_count(), len(c.get_increment_history()), 'of', 500\n",
                    ],
                    shows=r"\((?!500)(\d+), \1, 'of', 500\)",
                ),
            ],
            cwd=str(home / "counter"),
        ),
        "grader": in_pdb(
            "grader",
            "student_grades[student_id].append(grade)",
            "student_id == 'student4'",
            {"section": r"\('student4', 91\.0\)", "len(self.class_data)": r"\n2\b"},
        ),
        "patcher": Story(
            [
                Start(pane="python", command=f"{PYTHON} -q", until=">>>", shows=">>>"),
                Send(
                    pane="python",
                    keys=[
                        "from patcher_code import Patcher\n",
                        "Patcher().parse_line_numbers('0')\n",
                        "Patcher().parse_line_numbers('4:1')\n",
                        "Patcher().use('a', '0 <c>x</c>')\n",
                    ],
                    shows=r"(?s)\('', -1, -1\).*\('', 3, 0\).*'x\\na'",
                ),
            ],
            cwd=str(home / "patcher"),
        ),
        "purr": in_pdb(
            "purr",
            "result = self.meow()",
            "self.hunger > 20",
            {"self.hunger": r"\n2\d\b", "self.hunger > 10": "True"},
        ),
        "scientific_calculator": in_pdb(
            "scientific_calculator",
            "number_1, number_2 = numbers.split()",
            "",
            {"input_text": "```plus", "repr(self.action), numbers": r"\('None', '1'\)"},
        ),
        "shopping_cart": in_pdb(
            "shopping_cart",
            "self.total += price * quantity",
            "item in self.discounts",
            {"self.discounts[item]": r"\n20\b", "price * quantity": r"3\.0"},
        ),
        "sum_tree": in_pdb(
            "sum_tree",
            "left_sum = build_sum_tree(root.left)",
            "root.value == 5",
            {"root.left.left.left is root": "True"},
        ),
        "tomorrow_date": in_pdb(
            "tomorrow_date",
            "if day == 28:",
            "(month, day) == (2, 29)",
            {"today": r"2024, 2, 29", "datetime(year, month, day + 1)": "ValueError"},
        ),
    }


def _repl() -> Story:
    return Story(
        [
            Start(pane="python", command=f"{PYTHON} -q", until=">>>", shows=">>>"),
            Send(pane="python", keys=["42 * 17\n"], shows=r"\b714\b"),
            Send(
                pane="python",
                keys=["import math\n", "math.factorial(10)\n"],
                shows=r"\b3628800\b",
            ),
            Send(pane="python", keys=["[x**2 for x in range(10)]\n"], shows=r"49, 64, 81\]"),
            Send(
                pane="python",
                keys=[
                    "def is_prime(n):\n",
                    "    for d in range(2, n):\n",
                    "        if n % d == 0:\n",
                    "            return False\n",
                    "    return n > 1\n",
                    "\n",
                    "is_prime(97)\n",
                ],
                shows="True",
            ),
            Send(pane="python", keys=["exit()\n"], says="exited", ending=frozenset({"0"})),
        ]
    )


def _crash_in_c() -> Story:
    return Story(
        [
            Run(command='cc -g -O0 -o "$TMPDIR/crash" crash.c && echo compiled', shows="compiled"),
            Start(pane="gdb", command='gdb -q "$TMPDIR/crash"', until=r"\(gdb\)", shows=r"\(gdb\)"),
            Send(
                pane="gdb",
                keys=["run\n", "backtrace\n"],
                until=r"#1 .* in main",
                shows=r"(?s)SIGSEGV.*#0 .*total_of.*#1 .* in main",
            ),
            Send(
                pane="gdb",
                keys=["print order\n", "up\n", "print last\n"],
                shows=r"(?s)\(const struct order \*\) 0x10\b.*next = 0x10\b",
            ),
        ],
        cwd=str(_PROGRAMS),
    )


def _build() -> Story:
    return Story(
        [
            Start(
                pane="build",
                command=f"{PYTHON} build.py",
                until="build (done|failed)",
                show=r"error:|\?|build ",
                shows=r"Overwrite\? \[y/N\]",
            ),
            Send(
                pane="build",
                keys=["y\n"],
                until="build (done|failed)",
                show=r"error:|\?|build ",
                shows="build failed",
            ),
            Find(
                pane="build",
                pattern="error:",
                shows="undefined symbol 'frame_size'",
                ending=frozenset({"2"}),
            ),
        ],
        cwd=str(_PROGRAMS),
    )
