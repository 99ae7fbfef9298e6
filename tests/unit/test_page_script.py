"""The script of an audit's page, in node: its functions without a page around them."""

import json
import re
import shutil
import subprocess
from importlib import resources
from typing import Any

import pytest
from support import PATIENCE_S

from tmux_debug_mcp.viewing.outputs import duration

SCRIPT = (resources.files("tmux_debug_mcp.viewing") / "assets/page.js").read_text()

NODE = shutil.which("node") or ""
pytestmark = pytest.mark.skipif(not NODE, reason="node is not installed")

# The processor time that reading a recording takes. Each event of it is such a text.
READING = """
const lanes = [{ cast: 0 }], clock = 0, began_at = 0;
let text;
const read = () => ({ text, began_at });
function cost(events) {
  text = ["{}", ...events.map((one, number) => JSON.stringify([number, "o", one]))].join("\\n");
  recordings.clear();
  const before = process.cpuUsage().user;
  for (const _ of reading(0));
  return process.cpuUsage().user - before;
}
"""


def of_page(*names: str) -> str:
    """Return the definitions of functions and constants of the page's script."""
    found = []
    for name in names:
        definition = re.search(
            rf"^(?:const {name} = [^\n]*;(?: //[^\n]*)?$|function\*? {name}\(.*?^}}$)",
            SCRIPT,
            re.DOTALL | re.MULTILINE,
        )
        assert definition, name
        found.append(definition[0])
    return "\n".join(found)


def printed(script: str) -> Any:  # noqa: ANN401  as in JSON
    """Run a script in node, and return the JSON that it prints."""
    done = subprocess.run(
        [NODE, "-"],
        input=script,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    return json.loads(done.stdout)


def reading() -> str:
    parts = "FORWARD", "BREAKS", "SEQUENCES", "BEGUN", "LONGEST", "recordings", "reading"
    return of_page(*parts) + READING


def test_durations_are_those_of_the_table() -> None:
    seconds = [
        *(0.0, 0.0004, 0.0012, 0.0994, 0.0996, 0.4, 0.9997, 1.04, 59.97, 99.94, 99.96, 119.6),
        *(600.4, 3599.4, 3599.6, 10_800.0, 359_999.4, 360_001.0, 1e6, 31_536_000.0),
    ]
    milliseconds = [second * 1000 for second in seconds]
    shown = printed(
        of_page("duration") + f"\nconsole.log(JSON.stringify({milliseconds}.map(duration)))"
    )

    assert shown == [duration(second) for second in seconds]
    assert duration(119.6) == "2m 00s"


@pytest.mark.parametrize(
    ("begin", "hostile"),
    [
        *(
            ("", one)
            for one in ("\\r", " ", "x", "\\x1b", "\\x1b ", "\\x1b[", "\\x1b[1;", "\\x1b]")
        ),
        *(("\\x1b", " "), ("\\x1b[", "1;"), ("\\x1b[", " "), ("\\x1b]", "0;"), ("x", "\\r")),
    ],
)
def test_output_of_any_kind_is_read_in_time_that_grows_with_its_length(
    begin: str, hostile: str
) -> None:
    """Ten times as much may take thirty times as long, for what else the machine does.

    With an expression that looks at the same text again and again, it takes a hundred times.
    """
    few, many, few_pieces, many_pieces = printed(
        reading()
        + f"""
const whole = (count) => ["{begin}" + "{hostile}".repeat(count)];
const pieces = (count) => ["{begin}", ...Array(count / 20).fill("{hostile}".repeat(20))];
const least = (events) => Math.min(...[1, 2, 3].map(() => cost(events)));
cost(whole(10_000));  // compiles what it needs
console.log(JSON.stringify(
  [whole, pieces].flatMap((of) => [least(of(10_000)), least(of(100_000))])
));
"""
    )

    least_us = 10_000  # the clock of the processor is coarse
    assert many < 30 * max(few, least_us)
    assert many_pieces < 30 * max(few_pieces, least_us)
