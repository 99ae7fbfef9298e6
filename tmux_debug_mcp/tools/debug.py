"""The toolset `debug`: spec 001's five tools, with optional arguments added, and two of ours."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import anyio

from tmux_debug_mcp.clock import DEFAULT_TIMEOUT_S, Times
from tmux_debug_mcp.errors import (
    ArgumentError,
    KeysError,
    PaneNotFoundError,
    ToolError,
)
from tmux_debug_mcp.logs.matching import Matcher, compiled
from tmux_debug_mcp.logs.pane_text import PaneText
from tmux_debug_mcp.logs.seen import read_ends
from tmux_debug_mcp.panes.caller_session import CallerSession, PaneView
from tmux_debug_mcp.panes.creation import NewPane, check_command
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.panes.hidden_input import is_shown
from tmux_debug_mcp.panes.observing import Observation, since_cursor, since_last_keys
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.readable import confirmed_states
from tmux_debug_mcp.panes.reports import (
    MAX_ASKED_CHARACTERS,
    MAX_UNASKED_CHARACTERS,
    STEP_CHARACTERS,
    Reason,
    Report,
    Selection,
    report,
)
from tmux_debug_mcp.panes.running.runs import run_in_pane, run_in_shell
from tmux_debug_mcp.panes.sending import SendResult, send
from tmux_debug_mcp.panes.sizing import given_size, resize
from tmux_debug_mcp.panes.waiting import Begin, Conditions, observe, wait
from tmux_debug_mcp.vt.sizes import COLUMNS, ROWS
from tmux_debug_mcp.vt.steps import confirmation, steps

from .captures import MAX_CHARACTERS, capture, check_cursor
from .debug_arguments import CapturePane, CreatePane, KillPane, Run, SendKeys, Wait
from .results import NOT_SENT, has_ended, meta, observed, ran, row, status
from .toolset import CREATES, DESTROYS, READS, Answer, Outcome, Toolset, came_out, compact

INSTRUCTIONS = (
    "Real terminals for debugging: a server in one pane, requests from another. Start each program "
    "in a pane with tmux_create_pane, type with tmux_send_keys; both return what came of it. For "
    "commands that end, tmux_run. Never sleep: give wait_for, or call tmux_wait. Programs keep "
    "running between calls; panes stay after their program exits. The last line of a result, in "
    "brackets, says what the pane is doing: it runs, has ended, or awaits input (a line), hidden "
    "input (a password) or keys (a line editor, as at a shell's or gdb's prompt, or a menu). Its "
    "cursor, a byte offset, is for `since`."
)

TOOLSET = Toolset("debug", lambda engine: engine, INSTRUCTIONS)


@TOOLSET.tool(
    "tmux_create_pane",
    "Start a command in a new terminal pane: a server, a debugger, a shell such as 'bash'. Returns "
    "what it printed, or its screen, once it is at rest (ended, awaiting something or quiet), "
    "after timeout_s at the latest.",
    CREATES,
    may_take_long=True,
)
async def create_pane(engine: Engine, session: CallerSession, given: CreatePane) -> Answer:
    conditions = _conditions(
        engine.clock.times,
        given.timeout_s,
        wait_for=given.wait_for,
        port=given.port,
        show=given.show,
    )
    columns, rows = given_size(given.size) if given.size else (COLUMNS, ROWS)
    new = NewPane(
        given.command,
        given.name,
        cwd=given.cwd,
        env=given.env or {},
        columns=columns,
        rows=rows,
    )
    pane = await engine.create(new, is_only=True)
    confirmed = f"Created pane '{pane.name}' (id: {pane.id})"
    if conditions is None:
        return await _confirmed(pane, session, confirmed)
    observation = await since_cursor(pane, conditions.matcher(), 0)
    return await _observed(engine, session, observation, conditions, confirmed)


@TOOLSET.tool(
    "tmux_send_keys",
    "Type into a pane, and return the output that follows, or what has changed on the screen, "
    "once the pane is at rest. A string is key names alone ('C-c', 'Up Up Enter', 'F5'), a "
    "signal ('SIGTERM'), or text, which ends with ' Enter' or a line feed to press Enter: "
    "'ls -la Enter'. An array is steps, and so is each line of a text: ['break main Enter', "
    "'run Enter', 'C-c']. Each step but C-c waits until the program reads the terminal.",
    CREATES,
    may_take_long=True,
)
async def send_keys(engine: Engine, session: CallerSession, given: SendKeys) -> Answer:
    conditions = _conditions(
        engine.clock.times,
        given.timeout_s,
        wait_for=given.wait_for,
        stop_pattern=given.stop_pattern,
        show=given.show,
    )
    size = given_size(given.size) if given.size else None
    pane = await engine.find(given.pane_id)
    try:
        parts = []
        if given.keys or not size:
            parts = steps(given.keys, literal=given.literal, paste=given.paste)
    except KeysError:
        if not given.secret:
            raise
        raise KeysError(
            "The secret keys can't be typed as they are. Set literal, and send key names "
            "separately."
        ) from None
    step_timeout_s = DEFAULT_TIMEOUT_S if given.timeout_s is None else given.timeout_s
    matcher = conditions.matcher() if conditions else None
    resizing = partial(resize, engine, pane, *size) if size else None
    with pane.keeping_log():  # a kill right after the keys were typed leaves what they caused
        begin = pane.log.size
        sending = await send(pane, parts, step_timeout_s, matcher, resizing, is_secret=given.secret)
        confirmed = f"Resized pane '{given.pane_id}' to {given.size}"
        if parts:
            draws = sending.observation is not None and sending.observation.text.is_drawn_on
            confirmed = confirmation(
                given.pane_id,
                parts,
                sending.done,
                sending.why_not,
                remarks=sending.remarks,
                is_for_screen=draws,
            )
        secrets = [part.text for part in parts] if given.secret else []
        if conditions is None or sending.observation is None:
            if secrets:
                await pane.drain()
            remarks = await _on_secrets(pane, secrets, begin)
            return _not_sent(sending, await _confirmed(pane, session, confirmed, *remarks))
        further_steps = max(0, len(sending.observation.steps) - 1)
        room = conditions.shows.max_characters + STEP_CHARACTERS * further_steps
        shows = replace(conditions.shows, max_characters=min(room, MAX_ASKED_CHARACTERS))
        if sending.why_not:
            conditions = Conditions(timeout_s=0)
        conditions = replace(conditions, shows=shows)
        answer = await _observed(
            engine,
            session,
            sending.observation,
            conditions,
            confirmed,
            secrets=secrets,
            since=begin,
        )
        return _not_sent(sending, answer)


async def _on_secrets(pane: Pane, secrets: Sequence[str], since: int) -> list[str]:
    """Return a remark if the terminal has shown one of these secrets since a cursor."""
    shown = [await is_shown(pane, secret, since) for secret in secrets]
    return ["the terminal showed the secret, and the log has it"] if any(shown) else []


def _not_sent(sending: SendResult, answer: Answer) -> Answer:
    """Return an answer with the reason that a step was not sent, if none was that it stopped."""
    if not sending.why_not or answer.meta.get("reason") == Reason.STOPPED:
        return answer
    meta = {**answer.meta, "reason": NOT_SENT}
    outcome = answer.outcome and replace(answer.outcome, reason=NOT_SENT)
    return replace(answer, meta=meta, outcome=outcome)


def _conditions(
    times: Times,
    timeout_s: float | None,
    *,
    wait_for: str | None,
    stop_pattern: str | None = None,
    port: int | None = None,
    show: str | None,
) -> Conditions | None:
    """Return what a create or a send waits for, None if nothing is to be observed."""
    patterns = {"wait_for": wait_for, "stop_pattern": stop_pattern, "show": show}
    for name, pattern in patterns.items():
        if pattern is not None:
            compiled(name, pattern)  # before anything is done
    is_asked = wait_for is not None or port is not None
    if timeout_s == 0 and not is_asked:
        return None
    most = MAX_ASKED_CHARACTERS if is_asked else MAX_UNASKED_CHARACTERS
    default_s = DEFAULT_TIMEOUT_S if is_asked else times.rest_s
    return Conditions(
        wait_for,
        stop_pattern,
        is_for_rest=not is_asked,
        port=port,
        timeout_s=default_s if timeout_s is None else timeout_s,
        shows=Selection(most, show),
    )


async def _confirmed(pane: Pane, session: CallerSession, confirmed: str, *remarks: str) -> Answer:
    state = await pane.state()
    shown = PaneView(run=session.news(pane))
    blocks = [confirmed, status(pane, state, shown, *remarks)]
    return Answer(blocks, meta(pane, state), pane.id, shown={pane: shown})


async def _observed(
    engine: Engine,
    session: CallerSession,
    observation: Observation,
    conditions: Conditions,
    confirmed: str,
    *,
    secrets: Sequence[str] = (),
    since: int = 0,
) -> Answer:
    """Observe a pane; `secrets` were typed there after the cursor `since`."""
    observation.session = session
    pane = observation.pane
    reports = [await observe(observation, conditions, pane.clock.now() + conditions.timeout_s)]
    [taken] = await _taken(engine, reports, conditions)
    on_secrets = await _on_secrets(pane, secrets, since)
    remarks = ["; ".join([*on_secrets, *([taken] if taken else [])]) or None]
    return observed(reports, conditions, confirmed, remarks=remarks)


async def _taken(
    engine: Engine, reports: Sequence[Report], conditions: Conditions
) -> list[str | None]:
    """Return for each report which port the program could not get, and who has it."""
    return [
        await engine.taken_port(one.pane, one.state, one.excerpt.text, conditions.port)
        for one in reports
    ]


@TOOLSET.tool(
    "tmux_capture_pane",
    "Read a pane, running or exited: the last lines of its scrollback, or the screen of a "
    "full-screen program. With `since`, all printed from that cursor on. With `pattern`, only "
    "lines that match, behind their cursors. Of several panes, the newest lines by time.",
    READS,
)
async def capture_pane(engine: Engine, session: CallerSession, arguments: CapturePane) -> Answer:
    return await capture(engine, session, arguments)


@TOOLSET.tool(
    "tmux_run",
    "Run a command to its end, for its output and exit code. With pane_id it runs in the shell at "
    "its prompt there, also over ssh or in a container, which keeps directory and variables; "
    "without, in a new one. If it awaits input, the call returns: answer with tmux_send_keys. On "
    "timeout it gets C-c. A script can drive panes with `tmux-debug create|send|wait|capture|run|"
    "kill|list`, whose flags are these parameters: `tmux-debug create --name web CMD; tmux-debug "
    "send web 'run x' Enter --wait-for RE`. Each word of send is a step.",
    DESTROYS,
    may_take_long=True,
)
async def run_command(engine: Engine, session: CallerSession, arguments: Run) -> Answer:
    command, timeout_s = arguments.command, arguments.timeout_s
    if arguments.pane_id is not None and arguments.cwd is not None:
        raise ArgumentError(
            "Parameter 'cwd' is for a new pane. Omit it, or begin the command with cd."
        )
    if not timeout_s:
        raise ArgumentError(
            "Parameter 'timeout_s' is 0, which leaves the command no time. Give it some, or use "
            "tmux_create_pane to start something and return at once."
        )
    check_command(command)
    if arguments.show is not None:
        compiled("show", arguments.show)
    if arguments.pane_id is not None:
        pane = await engine.find(arguments.pane_id)
        with pane.keeping_log():
            run = await run_in_shell(pane, command, timeout_s)
            return await _ran(engine, session, run, arguments)
    pane = await engine.create(NewPane(command, cwd=arguments.cwd, is_evictable=True))
    with pane.keeping_log():
        run = await run_in_pane(pane, timeout_s)
        await engine.retire_run_panes()
        return await _ran(engine, session, run, arguments)


async def _ran(engine: Engine, session: CallerSession, run: Report, arguments: Run) -> Answer:
    """Return the answer of a run, as a wait shows it if the command goes on or `show` is given."""
    pane = run.pane
    # Why a shell did not get the command is in no log, and is no output to choose from.
    is_logged = not run.excerpt.lines
    run = replace(run, shown=PaneView(run.end, run=session.news(pane)))
    if is_logged and (run.reason.leaves_command or arguments.show is not None):
        observation = await since_cursor(pane, Matcher(show=arguments.show), run.start)
        observation.session = session
        await observation.read(run.end)
        shows = Selection(MAX_CHARACTERS, arguments.show)
        seen = await report(observation, Reason.INPUT, None, shows, run.end)
        run = replace(run, excerpt=seen.excerpt, screen=seen.screen, shown=seen.shown)
    elif is_logged and run.end > run.start:
        text = await PaneText.to_read(pane.log, run.start, run.end)
        run = replace(run, excerpt=await read_ends(text, run.end, MAX_CHARACTERS))
    taken = await engine.taken_port(pane, run.state, run.excerpt.text, None)
    return ran(run, arguments.timeout_s, taken)


@TOOLSET.tool(
    "tmux_wait",
    "Wait until a line matches, a spinner is gone, a pane (the first of several) is quiet or "
    "listens, or, with none of these, its program awaits input; or ends. Returns the output since "
    "the last keys, or the screen.",
    READS,
    may_take_long=True,
)
async def wait_for_panes(engine: Engine, session: CallerSession, arguments: Wait) -> Answer:
    is_one = isinstance(arguments.pane_id, str) or len(arguments.pane_id) == 1
    if arguments.since is not None and not is_one:
        raise ArgumentError("Parameter 'since' is for one pane. Give one pane, or omit it.")
    given = (arguments.pattern, arguments.stop_pattern, arguments.gone)
    others = (arguments.idle_s, arguments.port)
    if arguments.show is not None:
        compiled("show", arguments.show)
    conditions = Conditions(
        *given,
        is_for_input={*given, *others} == {None},
        idle_s=arguments.idle_s,
        port=arguments.port,
        timeout_s=arguments.timeout_s,
        shows=Selection(MAX_ASKED_CHARACTERS, arguments.show),
    )
    panes = [*await _named(engine, arguments.pane_id)]
    begin: Begin = since_last_keys
    if arguments.since is not None:
        await check_cursor(panes[0], arguments.since)
        begin = partial(since_cursor, cursor=arguments.since)
    reports = await wait(panes, conditions, begin, session)
    return observed(reports, conditions, remarks=await _taken(engine, reports, conditions))


@TOOLSET.tool(
    "tmux_kill_pane",
    "End panes: each with its program, all that this started, and its output. To signal only the "
    "program, use tmux_send_keys.",
    DESTROYS,
)
async def kill_pane(engine: Engine, session: CallerSession, arguments: KillPane) -> Answer:
    named = await _named(engine, arguments.pane_id)
    told: dict[Pane, str] = {}
    answers: dict[Pane, Answer] = {}

    async def kill(pane: Pane, name: str) -> None:
        try:
            # What a program awaits that is about to end takes time to find out, and is not told.
            left = (await pane.state()).left if pane.has_exited else ()
            state = await engine.kill(pane)
        except PaneNotFoundError:  # another call was faster
            told[pane] = str(PaneNotFoundError(name))
        except ToolError as error:  # which is raised once all others have ended
            told[pane] = error.text_for({pane.id: name})
        else:
            told[pane] = f"Killed pane '{name}' ({state})"
            ended = [f"ended {', '.join(left)}"] if left else []
            line = status(pane, state, PaneView(run=session.news(pane)), *ended)
            outcome = came_out("killed", state)
            answers[pane] = Answer([told[pane], line], meta(pane, state), pane.id, outcome=outcome)

    async with anyio.create_task_group() as tasks:
        for pane, name in named.items():
            tasks.start_soon(kill, pane, name)
    if len(answers) < len(named):
        raise ToolError("\n".join(told[pane] for pane in named))
    first, *others = (answers[pane] for pane in named)
    if not others:
        return first
    statuses = "\n".join(answers[pane].blocks[-1] for pane in named)
    return replace(
        first,
        blocks=[f"Killed {len(named)} panes", statuses],
        pane_id=[pane.id for pane in named],
        outcome=Outcome("killed"),
    )


async def _named(engine: Engine, names: str | Sequence[str]) -> dict[Pane, str]:
    """Return the panes that a call names, by one name or several, each with its first name.

    Raises:
        PaneNotFoundError, AmbiguousNameError: As for `Engine.find`.
    """
    named: dict[Pane, str] = {}
    for name in [names] if isinstance(names, str) else names:
        named.setdefault(await engine.find(name), name)
    return named


@TOOLSET.tool(
    "tmux_list_panes",
    "List panes as JSON: status, what each awaits or is blocked on, ports, pid, exit code or "
    "signal.",
    READS,
)
async def list_panes(engine: Engine) -> Answer:
    rows = [row(pane, state) for pane, state in await confirmed_states(await engine.listed())]
    rows.sort(key=has_ended)
    if not rows:
        return Answer(["No active panes. Use tmux_create_pane to start one."])
    return Answer([compact(rows)])
