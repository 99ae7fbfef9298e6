"""Which words of a command line are flags of `tmux-debug`, and which are run or typed."""

import pytest

from tmux_debug_mcp.errors import KeysError
from tmux_debug_mcp.verbs.parsing import UsageError, asks_for_help, parser_of
from tmux_debug_mcp.verbs.registry import VERBS, Prints
from tmux_debug_mcp.verbs.requests import Request, in_verbs, parse
from tmux_debug_mcp.vt.steps import steps

# The words of commands, whatever a parser of flags might make of them.
COMMANDS = [
    ("git", "checkout", "--", "release"),
    ("npm", "run", "dev", "--", "--port", "3000"),
    ("cargo", "run", "--", "--verbose"),
    ("make", "--", "--", "all"),
    ("echo", "--"),
    ("ls", "-l", "-q", "--json"),
    ("printf", "%s|", "a b", "--timeout", "5", "--help", "-h", "$HOME"),
    ("sh", "-c", "echo -- $1", "--", "--name=x"),
    ("prog", "-5", "-", "--env=A=b c", "-x y"),
    ("-", "-n"),
]
OUR_FLAGS = {
    "create": ["--name", "web", "--env", "A=b c", "-q", "--timeout=5"],
    "run": ["--timeout", "5", "--cwd=/", "--json"],
    "dev": ["--name", "web", "--restart"],
}


def command_of(verb: str, *words: str) -> list[str]:
    """Return the words of the command that a verb runs."""
    given: list[str] = parser_of(VERBS[verb]).parse_args(words).command
    return given


@pytest.mark.parametrize("verb", OUR_FLAGS)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_command_begins_at_its_first_word_and_keeps_all_that_follows(
    verb: str, words: tuple[str, ...]
) -> None:
    flags = OUR_FLAGS[verb]

    assert command_of(verb, *words) == [*words]
    assert command_of(verb, *flags, *words) == [*words]
    assert command_of(verb, "--", *words) == [*words]
    assert command_of(verb, *flags, "--", *words) == [*words]
    assert command_of(verb, *flags, "--", "--", *words) == ["--", *words]


def test_every_verb_that_runs_a_command_is_in_the_table() -> None:
    taking = [
        name
        for name, verb in VERBS.items()
        if any(action.dest == "command" for action in parser_of(verb).positionals)
    ]
    assert taking == list(OUR_FLAGS)


def test_words_are_quoted_for_the_shell_and_a_single_one_is_a_command_line() -> None:
    assert parse(["run", "git", "checkout", "--", "a b"], {}).arguments["command"] == (
        "git checkout -- 'a b'"
    )
    assert parse(["run", "cd /tmp && ls -- *"], {}).arguments["command"] == "cd /tmp && ls -- *"
    assert parse(["run", "--", "--version"], {}).arguments["command"] == "--version"


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (["--", "--", "Enter"], ["--", "Enter"]),
        (["--", "-l", "C-c"], ["-l", "C-c"]),
        (["--", "--"], ["--"]),
        (["one", "Enter", "--timeout", "5", "two"], ["one", "Enter", "two"]),
        (["--show", "x", "--", "a", "--show", "x"], ["a", "--show", "x"]),
        (["-5", "-", "-x y"], ["-5", "-", "-x y"]),
        (["--help me"], ["--help me"]),
        ([], []),
    ],
    ids=str,
)
def test_all_keys_are_typed(words: list[str], keys: list[str]) -> None:
    parser = parser_of(VERBS["send"])
    for placed in (["cat", *words], ["--literal", "cat", *words]):
        given = parser.parse_args(placed)
        assert (given.pane_id, given.keys) == ("cat", keys)


def test_all_words_behind_dashes_before_the_pane_are_words() -> None:
    given = parser_of(VERBS["send"]).parse_args(["--literal", "--", "--odd", "--", "-x"])
    assert (given.pane_id, given.keys, given.literal) == ("--odd", ["--", "-x"], True)


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("capture", ["--odd"]),
        ("wait", ["--odd", "-x"]),
        ("kill", ["--odd"]),
        ("attach", ["--odd"]),
        ("secret", ["--odd"]),
        ("restart", ["--odd"]),
        ("resize", ["--odd", "-x"]),
        ("call", ["--odd", "-x"]),
        ("replay", ["--odd"]),
        ("audit", ["--odd", "-x"]),
    ],
)
def test_words_behind_dashes_are_no_flags(verb: str, words: list[str]) -> None:
    parser = parser_of(VERBS[verb])
    given = parser.parse_args(["--", *words])
    read: list[str] = []
    for action in parser.positionals:
        value = getattr(given, action.dest)
        read += value if isinstance(value, list) else [value]
    assert read == words


@pytest.mark.parametrize("words", [["x", "--", "-y"], ["x", "--literal", "--", "y"]], ids=str)
def test_dashes_among_keys_are_refused(words: list[str]) -> None:
    with pytest.raises(UsageError, match=r"^'--' stands among KEYS, so it may be one of them or"):
        parse(["send", "cat", *words], {})


@pytest.mark.parametrize("verb", OUR_FLAGS)
def test_flag_behind_a_command_line_in_one_word_is_refused(verb: str) -> None:
    with pytest.raises(UsageError, match=r"^'--help' follows the command 'npm start'. Put"):
        parser_of(VERBS[verb]).parse_args(["npm start", "--verbose", "--help"])
    # It is a program's name, or the flag is none of ours.
    assert command_of(verb, "--", "my program", "--help") == ["my program", "--help"]
    assert command_of(verb, "my program", "--verbose") == ["my program", "--verbose"]


@pytest.mark.parametrize(
    ("verb", "words"), [("stop", ["--server", "1"]), ("run", ["--server=1", "make"])]
)
def test_server_behind_the_verb_is_refused_with_its_place(verb: str, words: list[str]) -> None:
    line = f"tmux-debug --server PID {verb}"
    with pytest.raises(UsageError, match=f"^--server goes before the verb: {line}\n"):
        parser_of(VERBS[verb]).parse_args(words)


def test_flag_that_is_none_of_ours_before_a_command_is_refused() -> None:
    with pytest.raises(UsageError, match=r"Flag '-x' is unknown.*Put -- before words that aren't"):
        parse(["run", "-x", "make"], {})
    with pytest.raises(UsageError, match=r"Argument --timeout: expected one argument"):
        parse(["run", "--timeout", "--", "make"], {})


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("run --help", True),
        ("run --timeout 5 -h", True),
        ("run npm --help", False),
        ("run --timeout 5 npm -h", False),
        ("dev -- npm --help", False),
        ("send cat x --help", True),
        ("send cat -- --help", False),
        ("config cursor -- --help", False),
    ],
)
def test_help_of_a_command_is_the_commands(line: str, expected: bool) -> None:  # noqa: FBT001
    assert asks_for_help(line.split()) is expected


@pytest.mark.parametrize(
    ("words", "prints"),
    [
        (["capture", "web"], Prints.ALL),
        (["capture", "--text", "web"], Prints.TEXT),
        (["list", "--text"], Prints.TEXT),
        (["run", "-q", "make", "-q"], Prints.ERRORS),
        (["run", "make", "--status"], Prints.ALL),
        (["send", "web", "x", "--status"], Prints.STATUS),
        (["list", "--json"], Prints.JSON),
        (["call", "tmux_list_panes", "--json"], Prints.JSON),
        (["kill", "web", "-q", "--quiet"], Prints.ERRORS),
    ],
)
def test_one_flag_says_what_is_printed(words: list[str], prints: Prints) -> None:
    assert parse(words, {}).prints is prints


@pytest.mark.parametrize(
    "flags",
    [["-q", "--status"], ["--status", "--json"], ["--json", "-q"], ["--text", "-q"]],
    ids=" ".join,
)
def test_flags_that_contradict_each_other_are_refused(flags: list[str]) -> None:
    with pytest.raises(UsageError, match=r"^-q, --text, --status and --json each say what is "):
        parse(["kill", "web", *flags], {})


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("Down Enter p w Enter", "Down Enter 'p w' Enter"),
        ("Escape :wq Enter", "Escape :wq Enter"),
        ("C-c echo it's Enter", """C-c 'echo it'"'"'s' Enter"""),
        ("C-c make\nmake test\n", "C-c 'make\nmake test' Enter"),
        ("hello \033[31m C-a", r"'hello \x1b[31m' C-a"),
        ("x]; or set literal C-a", "'x]; or set literal' C-a"),
        ("C-c " + "x" * 5000, "C-c 'the text'"),
    ],
)
def test_keys_in_one_word_with_text_are_told_as_words_of_a_shell(keys: str, words: str) -> None:
    with pytest.raises(KeysError) as mixed:
        steps(keys)
    assert in_verbs(str(mixed.value), Request(VERBS["send"], "", {"pane_id": "my pane"})).endswith(
        " is a key name, which can't be mixed with text. Give separate words: tmux-debug send "
        f"'my pane' {words}; or use --literal to type all of it as text."
    )


@pytest.mark.parametrize(
    ("keys", "advice"),
    [
        ('["Down", "x"]', "Give its strings as separate words, or use --literal to type it."),
        ("SIGFOO", "Use --literal to type it as text."),
        ("F99", "use --literal to type exactly this, with a line feed for Enter."),
    ],
)
def test_error_of_keys_names_the_flag(keys: str, advice: str) -> None:
    with pytest.raises(KeysError) as wrong:
        steps(keys)
    assert in_verbs(str(wrong.value), Request(VERBS["send"], "")).endswith(f" {advice}")


@pytest.mark.parametrize("flag", ["-q", "--quiet"])
@pytest.mark.parametrize(
    ("words", "left_out"),
    [
        (["capture", "web"], "the status line"),
        (["capture", "web", "--at=-5s"], "the status line"),
        (["list"], "the remark on ended panes"),
    ],
    ids=["capture", "capture --at", "list"],
)
def test_verb_that_only_prints_is_not_quiet_and_says_what_leaves_out_the_rest(
    words: list[str], left_out: str, flag: str
) -> None:
    with pytest.raises(UsageError) as refused:
        parse([*words, flag], {})
    assert str(refused.value).startswith(
        f"{flag} prints nothing but errors, and {words[0]} only prints. Use --text to leave out "
        f"{left_out}.\n"
    )


@pytest.mark.parametrize("flag", ["-q", "--text", "--status", "--json"])
def test_events_are_followed_as_lines_and_not_otherwise(flag: str) -> None:
    with pytest.raises(UsageError, match=r"^--follow prints lines as they come\. Omit "):
        parse(["wait", "web", "--follow", flag], {})


@pytest.mark.parametrize(
    ("word", "seconds"),
    [("10", 10), ("0.5", 0.5), (".5", 0.5), ("0", 0), ("10s", 10), ("1.5m", 90), ("1h", 3600)],
)
def test_time_is_in_seconds_or_has_a_unit(word: str, seconds: float) -> None:
    given = parse(
        ["wait", "web", "--timeout", word, "--idle", word, "--follow", f"--every={word}"], {}
    )
    assert (given.arguments["timeout_s"], given.arguments["idle_s"], given.every_s) == (
        seconds,
    ) * 3


@pytest.mark.parametrize("word", ["x", "", "-1", "1e3", "nan", "10 s", "10w", "m"])
def test_what_is_no_time_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match=r"--timeout: '.*' is not a time\. Give 10, 0\.5, 90s, "):
        parse(["wait", "web", f"--timeout={word}"], {})


def test_what_the_caller_has_given_is_told_as_it_was_given() -> None:
    kill = Request(VERBS["kill"], "tmux_kill_pane", {"pane_id": ["tmux_run"]})
    sentence = "Pane 'tmux_run timeout_s' can't be found, and isn't there. Use {}."

    assert in_verbs(sentence.format("tmux_list_panes"), kill) == sentence.format("tmux-debug list")


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 100_000], ids=["digits", "depth"])
def test_values_that_json_can_not_hold_are_left_to_the_tool(value: str) -> None:
    schema = {"properties": {"idle_s": {"type": "number"}}}

    request = parse(["call", "tmux_wait", f"idle_s={value}"], {"tmux_wait": schema})

    assert request.arguments == {"idle_s": value}
