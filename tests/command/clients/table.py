"""Print what came of the tests of real clients as a table: `python table.py RESULTS CLIENTS`.

RESULTS is what pytest has written for `--junitxml`, CLIENTS the directory with the clients.
"""

import json
import sys
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from pathlib import Path

# What a test's name contains, the client that it tries, and that client's package.
_CLIENTS = {
    "claude_code": ("Claude Code", "@anthropic-ai/claude-code"),
    "codex": ("Codex", "@openai/codex"),
    "gemini": ("Gemini CLI", "@google/gemini-cli"),
    "opencode": ("OpenCode", "opencode-ai"),
    "inspector": ("MCP Inspector", "@modelcontextprotocol/inspector"),
    "conformance": ("MCP conformance suite", "@modelcontextprotocol/conformance"),
    "typescript_sdk[1": ("TypeScript SDK 1", "@modelcontextprotocol/sdk"),
    "typescript_sdk[2": ("TypeScript SDK 2", "@modelcontextprotocol/client"),
    "python_sdk_1": ("Python SDK 1", "mcp"),
}


def main(results: str, clients: str) -> None:
    """Print it."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for case in ET.parse(results).iter("testcase"):  # noqa: S314  pytest has just written it
        [word] = [word for word in _CLIENTS if word in case.attrib["name"]]
        outcomes = {child.tag for child in case} & {"failure", "error", "skipped"}
        counts[word][outcomes.pop() if outcomes else "passed"] += 1
    print("| client | version | passed | failed | skipped |\n|---|---|---|---|---|")
    for word, (client, package) in _CLIENTS.items():
        count = counts[word]
        failed = count["failure"] + count["error"]
        version = _version(Path(clients), package)
        print(f"| {client} | {version} | {count['passed']} | {failed} | {count['skipped']} |")


def _version(clients: Path, package: str) -> str:
    """Return the version that is installed; "" for none."""
    if package == "mcp":
        [found] = clients.glob("sdk-1/lib/*/site-packages/mcp-*.dist-info")
        return found.name.removesuffix(".dist-info").removeprefix("mcp-")
    manifest = clients / "node_modules" / package / "package.json"
    return str(json.loads(manifest.read_text())["version"]) if manifest.exists() else ""


if __name__ == "__main__":
    main(*sys.argv[1:])
