"""JSON with comments: what is put is there, nothing else changes, and removing undoes it."""

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmux_debug_mcp.clients.formats import FormatError
from tmux_debug_mcp.clients.jsonc import Document, load, put, remove

PATH = ("mcpServers", "tmux-debug")
ENTRY = {"command": "/bin/tmux-debug-mcp", "args": ["--keep", "60m"]}
WRITTEN = """\
{
  "mcpServers": {
    "tmux-debug": {
      "command": "/bin/tmux-debug-mcp",
      "args": ["--keep", "60m"]
    }
  }
}"""
MINIFIED = json.dumps({"tmux-debug": ENTRY}, separators=(",", ":"))
TABS = """\
{
\t"mcpServers": {
\t\t"a": {} // one
\t\t// two
\t},
}"""
WRITTEN_INTO_TABS = """\
{
\t"mcpServers": {
\t\t"a": {}, // one
\t\t"tmux-debug": {
\t\t\t"command": "/bin/tmux-debug-mcp",
\t\t\t"args": ["--keep", "60m"]
\t\t}
\t\t// two
\t},
}"""
CRLF = '{\r\n    "mcpServers": {\r\n        "a": 1,\r\n    }\r\n}\r\n'
WRITTEN_INTO_CRLF = """\
{
    "mcpServers": {
        "a": 1,
        "tmux-debug": {
            "command": "/bin/tmux-debug-mcp",
            "args": ["--keep", "60m"]
        },
    }
}
""".replace("\n", "\r\n")

COMMENTS = st.one_of(
    st.from_regex(r"//[ a-z{}\",:]{0,8}", fullmatch=True).map(lambda text: f"{text}\n"),
    st.from_regex(r"/\*[ a-z{}\",:\n]{0,8}\*/", fullmatch=True),
)
TRIVIA = st.lists(
    st.one_of(st.sampled_from(["", " ", "  ", "\t", "\n", "\n    ", "\r\n"]), COMMENTS), max_size=3
).map("".join)
KEYS = st.one_of(st.sampled_from(["mcpServers", "tmux-debug", "a", 'q"', "é"]), st.text(max_size=3))
FLAGS = st.sampled_from([False, True])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)
)


@st.composite
def values(draw: st.DrawFn, depth: int = 2) -> str:
    """Draw the text of a value."""
    kind = draw(st.sampled_from(["scalar", "text", "array", "object"]))
    if kind == "object" and depth:
        return draw(objects(depth - 1))
    if kind == "array" and depth:
        items = draw(st.lists(values(depth - 1), max_size=3))
        trivia = draw(TRIVIA)
        comma = draw(st.sampled_from(["", ","])) if items else ""
        return f"[{trivia}{f'{trivia},{trivia}'.join(items)}{trivia}{comma}{trivia}]"
    if kind == "text":
        return json.dumps(draw(st.text(max_size=5)), ensure_ascii=draw(FLAGS))
    return json.dumps(draw(SCALARS))


@st.composite
def objects(draw: st.DrawFn, depth: int = 2) -> str:
    """Draw the text of an object, in which keys may be there several times."""
    members = []
    for _ in range(draw(st.integers(0, 3))):
        key = draw(KEYS)
        value = draw(objects(depth - 1)) if key == "mcpServers" and depth else draw(values(depth))
        parts = [json.dumps(key), ":", value, ""]
        members.append("".join(draw(TRIVIA) + part for part in parts))
    inner = ",".join(members)
    has_comma = draw(FLAGS)
    if members and has_comma:
        inner += draw(TRIVIA) + ","
    return "{" + inner + draw(TRIVIA) + "}"


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Draw a text with an object."""
    start = draw(st.sampled_from(["", "\ufeff"]))
    return start + draw(TRIVIA) + draw(objects()) + draw(TRIVIA)


def tokens(text: str) -> list[tuple[str, str]]:
    """Return the strings and comments of a text; one of the two is empty."""
    return re.findall(r'("(?:[^"\\]|\\.)*")|(//[^\r\n]*|/\*.*?\*/)', text, re.DOTALL)


def comments(text: str) -> list[str]:
    """Return the comments of a text."""
    return [comment for _, comment in tokens(text) if comment]


def is_free(value: object) -> bool:
    """Tell whether the path can be put into a value, and is not there."""
    for key in PATH:
        if not isinstance(value, dict):
            return False
        if key not in value:
            return True
        value = value[key]
    return False


@given(documents())
def test_entry_is_put_and_nothing_else_changes_and_removing_restores_every_byte(text: str) -> None:
    before = load(text)
    if not is_free(before):
        return
    assert isinstance(before, dict)

    [after] = put(text, PATH, ENTRY)

    servers = before.get("mcpServers", {})
    assert load(after) == before | {"mcpServers": servers | {"tmux-debug": ENTRY}}
    assert comments(after) == comments(text)
    assert [*remove(after, PATH)]["mcpServers" in before] == text


@given(documents(), st.data())
def test_any_member_is_removed_with_its_own_comments_only(text: str, data: st.DataObject) -> None:
    before = load(text)
    assert isinstance(before, dict)
    if not before:
        return
    key = data.draw(st.sampled_from(sorted(before)))

    after = next(remove(text, (key,)))

    written = [json.loads(string) for string, _ in tokens(text) if string]
    if written.count(key) == 1:
        assert load(after) == {name: value for name, value in before.items() if name != key}
        # Two // comments may now be on one line.
        assert all(comment in after for comment in comments(text.replace(text_of(text, key), "")))


def text_of(text: str, key: str) -> str:
    """Return the text of a member."""
    document = Document(text)
    members = document.object_at(document.start, ()).members
    member = next(member for member in members if member.key == key)
    return text[member.start : member.end]


@given(st.text(alphabet='{}[]:,"/*\\ \n1ae-', max_size=30))
def test_any_text_is_read_or_refused_with_its_place(text: str) -> None:
    try:
        load(text)
    except FormatError as error:
        place = error.line, error.column
    else:
        place = 1, 1
    assert place >= (1, 1)


@given(st.recursive(SCALARS | st.text(), lambda each: st.lists(each) | st.dictionaries(KEYS, each)))
def test_json_is_read_as_python_reads_it(value: object) -> None:
    assert load(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", f"{WRITTEN}\n"),
        (" \n\n", f"{WRITTEN}\n"),
        ("\ufeff", f"\ufeff{WRITTEN}\n"),
        ("// mine", f"// mine\n{WRITTEN}\n"),
        ("/* mine */\n", f"/* mine */\n{WRITTEN}\n"),
        ("{}", WRITTEN),
        ("{}\n", f"{WRITTEN}\n"),
        ('{"a":1}', f'{{"a":1,"mcpServers":{MINIFIED}}}'),
        ('{ "a": 1 }', f'{{ "a": 1, "mcpServers": {json.dumps({"tmux-debug": ENTRY})} }}'),
        (TABS, WRITTEN_INTO_TABS),
        (CRLF, WRITTEN_INTO_CRLF),
    ],
)
def test_style_of_the_file_is_kept(text: str, after: str) -> None:
    assert [*put(text, PATH, ENTRY)] == [after]


def test_value_is_replaced_where_it_is() -> None:
    text = '{"a": /* old */ 1 /* one */, "b": 2}'

    assert [*put(text, ("a",), [2])] == ['{"a": /* old */ [2] /* one */, "b": 2}']


def test_last_of_several_members_with_the_same_key_counts() -> None:
    text = '{"mcpServers": {}, "mcpServers": {"a": 1}}'

    [after] = put(text, ("mcpServers", "b"), 2)

    assert after == '{"mcpServers": {}, "mcpServers": {"a": 1, "b": 2}}'
    assert next(remove(after, ("mcpServers", "b"))) == text


@pytest.mark.parametrize(
    ("text", "reason", "line", "column"),
    [
        ('{\n  "a" 1\n}', "is not JSON", 2, 7),
        ('{"a": 1 "b": 2}', "is not JSON", 1, 9),
        ("{'a': 1}", "is not JSON", 1, 2),
        ('{"a": nul}', "is not JSON", 1, 7),
        ('{"a": "b\n"}', "is not JSON", 1, 9),
        ('{"a": NaN}', "is not JSON: NaN", 0, 0),
        ("[1 2]", "is not JSON", 1, 4),
        ("{} {}", "is not JSON", 1, 4),
        ('{"a": 1, /* b */ "c": "// d" // e\n x}', "is not JSON", 2, 2),
        ("{\n/* a", "is not JSON", 2, 1),
        ("{,}", "is not JSON", 1, 2),
        ("[,]", "is not JSON", 1, 2),
        ("[]", "is not a JSON object", 1, 1),
        ('{\n  "mcpServers": []\n}', "no object at 'mcpServers'", 2, 17),
        ("[" * 100_000, "is nested too deeply", 0, 0),
    ],
)
def test_what_is_no_json_object_is_refused_with_its_place(
    text: str, reason: str, line: int, column: int
) -> None:
    with pytest.raises(FormatError, match=reason) as caught:
        next(put(text, PATH, ENTRY))

    assert (caught.value.line, caught.value.column) == (line, column)


def test_huge_file_is_edited() -> None:
    history = [{"display": "x" * 200, "pastedContents": {}, "number": n} for n in range(5_000)]
    text = json.dumps({"projects": {"/a": {"history": history}}}, indent=2)

    began = time.process_time()
    [after] = put(text, PATH, ENTRY)

    print(f"{len(text) >> 20} MiB in {time.process_time() - began:.2f} s")  # shown with -s
    assert next(remove(after, PATH)) == text
