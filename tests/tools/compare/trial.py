"""One truth or task with one tool: `python -m compare.trial TOOL TRUTH|TASK HOME [COMMAND]`.

TRUTH is a number, TASK a name. A line of JSON on standard output has what came of it.
"""

import importlib
import json
import os
import sys
from pathlib import Path

from .agents import agent_with
from .results import Effort, Outcome, Result
from .tasks import NIGHTMARES, tasks
from .tools import NotOfferedError, Tool
from .truths import TRUTHS, BrokenTruthError, Trial

# Where the class of each tool is, by the word that names the tool on the command line.
TOOLS = {
    "ours": "ours:Ours",
    "tmux": "tmux_by_hand:TmuxByHand",
    "libtmux": "with_libtmux:Libtmux",
    "pexpect": "with_pexpect:Pexpect",
    "pty": "harness_pty:HarnessPty",
    "wrapix": "servers:Wrapix",
    "nickgnd": "servers:Nickgnd",
    "bnomei": "servers:Bnomei",
    "nighttrek": "servers:NightTrek",
    "ellery": "servers:Ellery",
}


def tool_class(word: str) -> type[Tool]:
    """Return the class of a tool."""
    module, _, name = TOOLS[word].partition(":")
    found: type[Tool] = getattr(importlib.import_module(f"compare.{module}"), name)
    return found


def result_of(tool: Tool, home: Path, number: int) -> Result:
    """Try a truth."""
    try:
        tool.start()
        TRUTHS[number].look(Trial(tool, home))
    except NotOfferedError:
        return Result(Outcome.NOT_OFFERED)
    except BrokenTruthError as seen:
        return Result(Outcome.BROKEN, str(seen))
    except Exception as error:  # noqa: BLE001  whatever a tool raises is what was seen
        return Result(Outcome.BROKEN, f"{type(error).__name__}: {error}")
    return Result(Outcome.HOLDS)


def effort_of(tool: Tool, home: Path, name: str) -> Effort:
    """Work on a task."""
    tool.start()
    try:
        return agent_with(tool, tasks(NIGHTMARES)[name], home).work()
    except Exception as error:  # noqa: BLE001  as above
        return Effort(tool.turns, tool.received, 0.0, f"{type(error).__name__}: {error}")
    finally:
        tool.finish()


def main() -> None:
    """Try it."""
    word, what, path, *command = sys.argv[1:]
    home = Path(path)
    tool = tool_class(word)(" ".join(command), home, os.environ)
    if what.isdigit():
        came = {**vars(result_of(tool, home, int(what))), "version": tool.version()}
    else:
        came = vars(effort_of(tool, home, what))
    print(json.dumps(came))


if __name__ == "__main__":
    main()
