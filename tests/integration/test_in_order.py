"""The lines of several panes are captured in the order in which they were printed."""

import random
import re

import anyio
import pytest
from support import PATIENCE_S, Tools, eventually

from tmux_debug_mcp.tools.captures import Printed, unsure_of

# Prints each line that it reads, and no echo of it.
SAYS = "stty -echo; echo up; exec cat"
# The clock of files ticks at least every 10 ms.
APART_S = 0.025
LINE = re.compile(r"~?\d\d:\d\d:\d\d\.\d{3} (\w+) +(.*)")

Said = list[tuple[str, str]]


async def create(tools: Tools, name: str) -> None:
    """Create a pane that prints what it is told."""
    await tools.create(SAYS, name=name, wait_for="up", timeout_s=PATIENCE_S)


async def say(tools: Tools, said: Said) -> None:
    """Have panes, by their names, print lines one after the other."""
    for name, text in said:
        [pane] = [pane for pane in tools.engine.panes if pane.name == name]
        await anyio.sleep(APART_S)
        size = pane.log.size + len(text) + 2
        await tools.send(name, f"{text}\n", timeout_s=0)
        await eventually(lambda: pane.log.size >= size)  # noqa: B023  called before the next one


def lines_of(text: str) -> Said:
    """Return the pane and the text of each line of a capture, without `up`."""
    lines = [LINE.fullmatch(line) for line in text.split("\n")]
    assert all(lines), text
    return [(line[1], line[2]) for line in lines if line and line[2] != "up"]


async def captured(tools: Tools, panes: list[str], **arguments: object) -> Said:
    """Return the lines of a capture of several panes."""
    return lines_of((await tools.blocks("capture_pane", pane_id=panes, **arguments))[0])


async def test_lines_of_several_panes_come_in_the_order_of_time(tools: Tools) -> None:
    names = ["web", "api", "database"]
    for name in names:
        await create(tools, name)
    choose = random.Random(1)  # noqa: S311
    said = [(choose.choice(names), f"line {number}") for number in range(40)]
    await say(tools, said)

    assert await captured(tools, names) == said
    assert await captured(tools, names[::-1], lines=7) == said[-7:]
    assert await captured(tools, ["api", "web"]) == [one for one in said if one[0] != "database"]
    sevens = [one for one in said if one[1].endswith("7")]
    assert await captured(tools, names, pattern="7$") == sevens
    assert await captured(tools, names, pattern="7$", lines=2) == sevens[-2:]


async def test_pane_that_has_ended_is_in_the_order_too(tools: Tools) -> None:
    await create(tools, "web")
    await create(tools, "job")
    first = [("job", "begins"), ("web", "serves"), ("job", "ends")]
    await say(tools, first)
    await tools.send("job", "C-d")
    await tools.exited("job")
    await say(tools, [("web", "goes on")])

    assert await captured(tools, ["web", "job"]) == [*first, ("web", "goes on")]
    status = (await tools.blocks("capture_pane", pane_id=["web", "job"]))[-1]
    doubt = r"(\[~: may have come before those above it\] )?"
    assert re.fullmatch(rf"{doubt}\[debug-1 web running .*\] \[debug-2 job exited .*\]", status)


async def test_pane_that_is_named_twice_counts_once(tools: Tools) -> None:
    await create(tools, "web")
    await say(tools, [("web", "once")])

    assert await captured(tools, ["web", "debug-1", "web"]) == [("web", "once")]


async def test_line_counts_from_when_it_is_complete(tools: Tools) -> None:
    # A prompt stands there for long before somebody types a command behind it.
    await tools.create("printf 'your name: '; read name; sleep 60", name="asks", wait_for="name")
    await create(tools, "web")
    await say(tools, [("web", "asks")])
    await anyio.sleep(APART_S)
    await tools.send("asks", "Bob Enter", timeout_s=PATIENCE_S)

    assert await captured(tools, ["asks", "web"]) == [("web", "asks"), ("asks", "your name: Bob")]


async def test_what_does_not_fit_is_the_oldest(tools: Tools) -> None:
    for name in ("one", "two"):
        await tools.create(f"seq -f '{name} %.0f {'x' * 90}' 300", name=name, timeout_s=PATIENCE_S)
    text, _ = await tools.blocks("capture_pane", pane_id=["one", "two"], lines=600)

    first, *lines = text.split("\n")
    assert first == "[older lines left out]"
    numbers = [int(line.split()[3]) for line in lines]
    assert numbers == list(range(numbers[0], 301))
    assert set(lines_of("\n".join(lines))) == {("two", f"two {n} {'x' * 90}") for n in numbers}
    assert 15_000 < len(text) < 16_200


async def test_lines_around_those_that_match_are_of_all_panes(tools: Tools) -> None:
    await create(tools, "web")
    await create(tools, "worker")
    said = [
        *(("web", "GET /"), ("worker", "idle"), ("web", "order 7"), ("worker", "writes")),
        *(("web", "GET /"), ("worker", "idle"), ("worker", "idle"), ("web", "failed 7")),
        *(("worker", "idle"), ("web", "GET /")),
    ]
    await say(tools, said)
    arguments = {"pane_id": ["worker", "web"], "pattern": "7$"}

    text, status = await tools.blocks("capture_pane", **arguments, context=1)
    first, second = text.split("\n[...]\n")
    assert (lines_of(first), lines_of(second)) == (said[1:4], said[6:9])
    assert status.startswith("[2 lines match")
    text, _ = await tools.blocks("capture_pane", **arguments, context=3)
    assert lines_of(text) == said
    text, _ = await tools.blocks("capture_pane", **arguments, context=2, lines=1)
    assert lines_of(text) == said[5:]


def printed(*lines: tuple[str, float, float]) -> list[Printed]:
    return [Printed(after, at, name, 0, "") for name, after, at in lines]


@pytest.mark.parametrize(
    ("lines", "unsure"),
    [
        (printed(("a", 1, 1), ("b", 2, 2), ("a", 3, 3)), set()),
        (printed(("a", 1, 1), ("b", 0.996, 1)), {1}),
        (printed(("a", 1, 1), ("b", 1.0005, 1.0005), ("b", 1.0008, 1.0008)), {1, 2}),
        (printed(("a", 1, 1), ("a", 1.0001, 1.0001), ("b", 1.002, 1.002)), set()),
        (printed(("a", 0, 1), ("a", 0, 1), ("b", 2, 2)), set()),
        (printed(("b", 1, 1), ("a", 0, 2), ("a", 2, 2)), {1}),
        (printed(("b", 1, 1), ("b", 2, 2), ("a", 1.5, 3)), {2}),
        (printed(("b", 1, 1), ("c", 2, 2), ("a", 0, 3), ("c", 4, 4)), {2}),
        (printed(("a", 0, 9), ("a", 0, 9)), set()),
    ],
)
def test_lines_are_marked_that_may_stand_elsewhere(lines: list[Printed], unsure: set[int]) -> None:
    assert unsure_of(lines) == unsure


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"since": 5}, "Parameter 'since' is for one pane. Give one pane, or omit it."),
        ({"view": "screen"}, "Parameter 'view' is for one pane."),
        ({"context": 1}, "Parameter 'context' is for lines that match. Give "),
        ({"pane_id": ["web", "wbe"]}, "Pane 'wbe' not found."),
        ({"pane_id": []}, "Parameter 'pane_id' is []."),
        ({"pattern": "("}, "is not an RE2 regular expression"),
    ],
)
async def test_bad_calls_are_errors(
    tools: Tools, arguments: dict[str, object], message: str
) -> None:
    await create(tools, "web")
    await create(tools, "api")

    given = {"pane_id": ["web", "api"], **arguments}
    assert message in await tools.error("capture_pane", **given)
