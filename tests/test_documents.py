"""What documents point at exists, and what they show can be read."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))


def test_every_test_that_the_guarantees_name_exists() -> None:
    named = re.findall(
        r"`(?:\w+/)*(test_\w+)(\.py)?`", (ROOT / "docs" / "guarantees.md").read_text()
    )

    assert len(named) > 15
    for name, is_file in named:
        assert [*(ROOT / "tests").rglob(f"{name}.py")] if is_file else f"def {name}(" in TESTS, name


def test_every_configuration_in_json_can_be_read() -> None:
    texts = [path.read_text() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]]
    blocks = [
        block for text in texts for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    ]

    assert len(blocks) >= 3
    for block in blocks:
        configuration = json.loads(block)
        [server] = (configuration.get("mcpServers") or configuration["mcp"]).values()
        assert server["command"]


def test_every_link_between_documents_leads_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", document.read_text()):
            assert (document.parent / target).exists(), (document, target)
