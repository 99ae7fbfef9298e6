"""Search for bytes that break a promise of `targets`, guided by coverage: `./dev fuzz`.

Each target has a process of its own, for a number of minutes. What covers new code is kept in the
cache, and the smallest set that covers as much, in the corpus, with `--keep`.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .targets import TARGETS

CORPUS = Path(__file__).with_name("corpus")
WORDS = Path(__file__).with_name("words.dict")
# What programs have printed, for the targets that read that.
RECORDED = Path(__file__).parents[1] / "corpus"
_READS_RECORDED = ("terminal", "drawing", "echo", "capture", "reading")
_MAX_INPUT_BYTES = 4096
# An input that takes longer is a fault, too: something in it takes more than linear time.
_MAX_INPUT_S = 10
_FOUND = re.compile(r"Test unit written to (\S+)")
_DONE = re.compile(r"Done (\d+) runs|#(\d+)\s+(?:DONE|pulse|NEW|REDUCE)")


def _fuzzer(target: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", "fuzz.one", target, *map(str, arguments)]


def _search(target: str, found: Path, minutes: float) -> tuple[str, int, list[Path]]:
    """Search for a time; return what was printed, how many inputs were tried, and what failed."""
    kept = found / target
    kept.mkdir(parents=True, exist_ok=True)
    limits = [f"-max_total_time={int(minutes * 60)}", f"-timeout={_MAX_INPUT_S}"]
    limits += [f"-max_len={_MAX_INPUT_BYTES}", f"-artifact_prefix={found}/{target}-"]
    limits.append(f"-dict={WORDS}")
    places = [kept, *([CORPUS / target] if (CORPUS / target).is_dir() else [])]
    places += [RECORDED] if target in _READS_RECORDED else []
    done = subprocess.run(
        _fuzzer(target, *limits, *places),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    counts = [int(one or other) for one, other in _DONE.findall(done.stderr)]
    failed = [Path(path) for path in _FOUND.findall(done.stderr)]
    return done.stdout + done.stderr, max(counts, default=0), failed


def _keep(target: str, found: Path) -> int:
    """Make a target's corpus of the fewest inputs that cover what all do; return their number."""
    smallest = found / f"{target}.smallest"
    shutil.rmtree(smallest, ignore_errors=True)
    smallest.mkdir()
    places = [smallest, found / target, CORPUS / target]
    (CORPUS / target).mkdir(parents=True, exist_ok=True)
    subprocess.run(_fuzzer(target, "-merge=1", *places), check=True, capture_output=True)
    shutil.rmtree(CORPUS / target)
    shutil.copytree(smallest, CORPUS / target)
    return len(list(smallest.iterdir()))


def main() -> int:
    """Fuzz the given targets, or all, and print a line about each. Return the exit status."""
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--minutes", type=float, default=1.0, help="for each target (1)")
    parser.add_argument("--keep", action="store_true", help="add what covers more to the corpus")
    given = parser.parse_args()
    wrong = [name for name in given.targets if name not in TARGETS]
    if wrong:
        parser.error(f"no target {wrong[0]}; there are {', '.join(TARGETS)}")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    found = cache / "tmux-debug-mcp" / "fuzz"
    status = 0

    def search(target: str) -> None:
        nonlocal status
        output, count, failed = _search(target, found, given.minutes)
        print(f"{target:14} {count:9,} inputs", "FAILED" if failed else "", flush=True)
        for path in failed:
            status = 1
            trace = output.partition("=== Uncaught Python exception: ===")[2].partition("\n\n")[0]
            print(f"  {path}{trace}", flush=True)
        if not failed and not count:
            status = 1
            print(f"  did not run:\n{output[-2000:]}", flush=True)
        if given.keep and count:
            print(f"{target:14} {_keep(target, found):9,} kept", flush=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(search, given.targets or TARGETS))
    return status


if __name__ == "__main__":
    sys.exit(main())
