"""The verb `audit`."""

import argparse
from collections.abc import Mapping


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    return argparse.ArgumentParser(
        prog="tmux-debug audit", description="Shows audits, the records of calls."
    )


def run(words: list[str], environ: Mapping[str, str]) -> int:  # noqa: ARG001
    """Run it, and return its exit status."""
    parser().parse_args(words)
    return 0
