"""Search for bytes that break a promise of `targets`, guided by what they cover: `./dev fuzz`.

Each target is searched for some minutes, in a process of its own, from the corpus and from what was
found to cover more in earlier searches, which is in the cache. Bytes that break a promise are
shrunk. They belong in the corpus, which every `./dev test` tries.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .targets import TARGETS

CORPUS = Path(__file__).with_name("corpus")
WORDS = Path(__file__).with_name("words.dict")
# What programs have printed, for the targets that read that.
RECORDED = Path(__file__).parents[2] / "corpus"
_READS_RECORDED = ("terminal", "drawing", "echo", "capture", "reading")
_MAX_INPUT_BYTES = 4096
# A fault as well: what takes so long takes more than linear time.
_MAX_INPUT_S = 10
_WRITTEN = re.compile(r"Test unit written to (\S+)")
_COUNT = re.compile(r"^#(\d+)|^Done (\d+) runs", re.MULTILINE)


@dataclass(frozen=True)
class Search:
    """What came of a search.

    Attributes:
        inputs: How many inputs were tried.
        failed: The input that breaks a promise or takes too long, if one was found.
        printed: What the fuzzer printed.
    """

    inputs: int
    failed: Path | None
    printed: str


def search(target: str, minutes: float, found: Path) -> Search:
    """Search for some minutes, or until a promise breaks. `found` is for what was found."""
    kept = found / target
    kept.mkdir(parents=True, exist_ok=True)
    options = {
        "max_total_time": max(1, round(minutes * 60)),  # 0 would be without end
        "timeout": _MAX_INPUT_S,
        "max_len": _MAX_INPUT_BYTES,
        "artifact_prefix": f"{found}/{target}-",
        "dict": WORDS,
    }
    places = [kept, CORPUS / target, *([RECORDED] if target in _READS_RECORDED else [])]
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.one", target]
        + [f"-{name}={value}" for name, value in options.items()]
        + list(map(str, places)),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    counts = [int(one or other) for one, other in _COUNT.findall(done.stderr)]
    written = _WRITTEN.search(done.stderr)
    return Search(max(counts, default=0), Path(written[1]) if written else None, done.stderr)


def fault(check: Callable[[bytes], None], data: bytes) -> Exception | None:
    """Return what a target raises for an input."""
    try:
        check(data)
    except Exception as error:  # noqa: BLE001  any is a fault
        return error
    return None


def shrunk(check: Callable[[bytes], None], data: bytes) -> bytes:
    """Return a shorter input that breaks a promise as well, if there is one."""
    size = len(data) // 2
    while size:
        start = 0
        while start < len(data):
            shorter = data[:start] + data[start + size :]
            if fault(check, shorter):
                data = shorter
            else:
                start += size
        size //= 2
    return data


def report(target: str, result: Search) -> bool:
    """Print a line about a search, and what it found; return whether all is well."""
    failed = result.failed
    if failed:
        check, data = TARGETS[target], failed.read_bytes()
        error = fault(check, data)
        told = f"takes more than {_MAX_INPUT_S} s"
        if error:
            data = shrunk(check, data)
            told = f"{error!r}"
        print(f"{target:14} {told}: {failed}\n  {data!r}", flush=True)
    elif not result.inputs:
        print(f"{target:14} did not run:\n{result.printed[-2000:]}", flush=True)
    else:
        print(f"{target:14} {result.inputs:11,} inputs", flush=True)
    return not failed and result.inputs > 0


def main() -> int:
    """Search the given targets, or all. Return the exit status."""
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--minutes", type=float, default=1.0, help="for each target (default 1)")
    given = parser.parse_args()
    wrong = [name for name in given.targets if name not in TARGETS]
    if wrong:
        parser.error(f"there is no target {wrong[0]}; choose from {', '.join(TARGETS)}")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")

    def run(target: str) -> bool:
        return report(target, search(target, given.minutes, cache / "tmux-debug-mcp" / "fuzz"))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return int(not all(list(pool.map(run, given.targets or TARGETS))))


if __name__ == "__main__":
    sys.exit(main())
