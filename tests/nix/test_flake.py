"""The flake as its users have it: commands, configurations, messages, shells, the package.

Run by `./dev e2e`, with hostpkgs in place of nixpkgs.
"""

import json
import re
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

import pytest
from nix.flake import ROOT, SYSTEM, evaluate, fenced, nix, output, tools_of

from tmux_debug_mcp.clients.table import CLIENTS, Homes
from tmux_debug_mcp.errors import StartError
from tmux_debug_mcp.options import OPTIONS
from tmux_debug_mcp.settings import seconds_of, settings_of
from tmux_debug_mcp.tools import debug
from tmux_debug_mcp.tools.toolset import choose

HERE = ROOT / "tests" / "nix"
NIX = (ROOT / "docs" / "nix.md").read_text()
SANDBOX = (ROOT / "docs" / "sandbox.md").read_text()
NETWORK = (ROOT / "docs" / "sandbox" / "network.md").read_text()
PROTECTION = (ROOT / "docs" / "sandbox" / "protection.md").read_text()


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    link = tmp_path_factory.mktemp("result") / "result"
    output("build", ".#tmux-debug-mcp", "--out-link", str(link))
    return link.resolve()


def test_each_error_says_what_it_should() -> None:
    errors = f".#checks.{SYSTEM}.evaluation.passthru.errors"
    messages = evaluate(errors, "errors: builtins.mapAttrs (_: error: error.message) errors")

    assert len(messages) >= 10
    for name, message in messages.items():
        failed = nix("eval", "--json", f"{errors}.{name}.call")
        assert failed.returncode == 1
        assert message in " ".join(failed.stderr.split()), name


def test_all_systems_evaluate() -> None:
    for system in ("x86_64-linux", "aarch64-linux"):
        assert evaluate(f".#packages.{system}.default.system") == system
        assert evaluate(f".#legacyPackages.{system}.lib", "builtins.attrNames") == [
            "mcpConfig",
            "mcpServers",
            "mkSandbox",
            "profiles",
            "protectDefault",
            "sandboxOptions",
        ]


# What a client runs of a project besides its servers: hooks, agents, skills, plugins, tasks.
RUN_BY = {
    "claude-code": [
        *(".claude/settings.json", ".claude/settings.local.json"),
        *(f".claude/{directory}/any" for directory in ("agents", "commands", "hooks", "skills")),
    ],
    "codex": [".codex/hooks.json", ".codex/rules/any", ".agents/skills/any"],
    "gemini": [".gemini/commands/any", ".gemini/extensions/any", ".gemini/.env"],
    "opencode": ["opencode.jsonc", ".opencode/plugin/any", ".opencode/opencode.json"],
    "vscode": [".vscode/tasks.json", ".devcontainer/devcontainer.json", ".devcontainer.json"],
    "cursor": [".cursor/hooks.json", ".cursor/commands/any"],
    "zed": [".zed/settings.json", ".zed/tasks.json", ".zed/debug.json"],
    "goose": [".goose/recipes/any", ".agents/skills/any"],
}


def test_what_each_client_runs_of_a_project_is_protected() -> None:
    """A client that is new in the table needs a row above, even if it runs nothing."""
    patterns = evaluate(f".#legacyPackages.{SYSTEM}.lib.protectDefault")
    project = Path("/project")
    for name, client in CLIENTS.items():
        sources = client.sources(Homes({"HOME": "/home"}, project))
        servers = [
            str(source.path.relative_to(project)) for source in sources if source.is_of_project
        ]
        for path in (*servers, *RUN_BY[name]):
            above = [path, *map(str, PurePath(path).parents)]
            assert any(fnmatchcase(one, pattern) for one in above for pattern in patterns), path


def is_taken(option: str, value: str) -> bool:
    """Tell whether the server takes a value of an option, by the name in Nix."""
    try:
        match option:
            case "keep":
                seconds_of(value)
            case "toolsets":
                choose(value)
            case _:
                values = {one.flag: one.default for one in OPTIONS}
                settings_of(values | {option: value}, {"HOME": "/"})
    except StartError:
        return False
    return True


VALUES = {
    "keep": [
        "1s",
        "60m",
        "2h",
        "30d",
        "31d",
        "720h",
        "721h",
        "2592000s",
        "2592001s",
        "99999999d",
        "0m",
        "60",
        "m",
        "1w",
        "-1s",
        "1.5h",
        "1.h",
        ".5d",
        ".0",
        "007m",
        "30.1d",
        "0000000001s",
        "",
    ],
    "size": [
        "120x40",
        "2x2",
        "1x2",
        "2x1",
        "500x200",
        "501x200",
        "500x201",
        "999x999",
        "120",
        "x",
        "120x",
        "120x40x1",
        "+1x2",
    ],
    "env": [
        *("A=b", "A=", "A=b C=d", " A=b\tC=d\n", "A='b c' D=\"e f\"", "A=b\\ c", "A='\"'", "A=a=b"),
        *('A="b\\"c"', "A=b'c d'e", "A-B=c", "1=2", "A=#b", "A=ü", "", " "),
        *("x", "=x", "A=b x", "A='b", 'A="b', "A=b\\", "A=b'c d", "A=b =c", 'A="b\\"'),
    ],
    "socket": ["default", "/s", "./s", "~/s", "mine"],
    "secrets": ["anyone", "person", "nobody"],
    "toolsets": ["debug", "tabs,terminal", "debug, tabs", "debgu", "debug,tmux", ","],
}


def test_nix_takes_the_values_that_the_server_takes() -> None:
    options = f".#legacyPackages.{SYSTEM}.lib.mcpServers.tmux-debug.options"
    # A string of JSON is one of Nix, too, but for what Nix would replace.
    text = json.dumps(json.dumps(VALUES)).replace("$", "\\$")
    found = evaluate(
        options,
        f"options: let values = builtins.fromJSON {text}; in"
        " builtins.mapAttrs (name: map options.${name}.type.check) values",
    )

    for option, values in VALUES.items():
        taken = dict(zip(values, found[option], strict=True))
        assert taken == {value: is_taken(option, value) for value in values}, option


def nix_commands() -> list[str]:
    """Return the commands of docs/nix.md."""
    return [
        line
        for block in fenced("console", NIX)
        for line in block.splitlines()
        if line.startswith("$ nix ")
    ]


def test_the_commands_do_what_they_say(tmp_path: Path) -> None:
    run, install = [line.removeprefix("$ nix ") for line in nix_commands()]
    assert (run, install) == ("run . -- demo", "profile install .")

    assert "in transfer\n      with payee.lock:" in output("run", ".", "--", "demo")
    output("profile install", ".", "--profile", str(tmp_path / "profile"))
    for name in ("tmux-debug-mcp", "tmux-debug"):
        command = [str(tmp_path / "profile" / "bin" / name), "--version"]
        printed = subprocess.check_output(command, text=True)
        assert printed.startswith(f"{name} 0.")


async def test_flake_gives_a_shell_with_a_client_configuration(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    [text] = fenced("nix", NIX)[:1]
    (tmp_path / "flake.nix").write_text(text.replace("/path/to/tmux-debug-mcp", str(ROOT)))
    shell = ["develop", "--no-write-lock-file", "--command"]
    assert "tmux-debug-mcp 0." in output(*shell, "tmux-debug-mcp", "--version", cwd=tmp_path)

    python = [
        "python3",
        "-c",
        "import os, sys; print(sys.executable, os.environ.get('PYTHONPATH'))",
    ]
    outside = subprocess.run(
        python, cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert output(*shell, *python, cwd=tmp_path) == outside

    [server] = json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"].values()
    assert await tools_of(server, environment) == [tool.name for tool in debug.TOOLSET.tools]
    assert server["env"].keys() == {"TMUX_DEBUG_AUDIT"}

    (tmp_path / ".mcp.json").unlink()
    (tmp_path / ".mcp.json").write_text("{}")
    output(*shell, "true", cwd=tmp_path)
    assert (tmp_path / ".mcp.json").read_text() == "{}"


def test_line_for_wrapix_is_the_one_that_is_evaluated() -> None:
    [line] = fenced("nix", NIX)[-2].splitlines()

    assert f"      {line}\n" in (HERE / "wrapix.nix").read_text()


def test_flake_for_a_sandbox_gives_a_shell_with_its_command(tmp_path: Path) -> None:
    text = fenced("nix", SANDBOX)[0]
    (tmp_path / "flake.nix").write_text(text.replace("/path/to/tmux-debug-mcp", str(ROOT)))

    assert "usage: tmux-debug-sandbox" in output(
        "develop", "--no-write-lock-file", "--command", "tmux-debug-sandbox", "--help", cwd=tmp_path
    )


def test_template_gives_a_shell_and_a_sandbox_that_has_it(tmp_path: Path) -> None:
    init = ["nix", "flake", "init", "--template", str(ROOT)]
    subprocess.run(init, cwd=tmp_path, capture_output=True, check=True)
    flake = tmp_path / "flake.nix"
    flake.write_text(flake.read_text().replace("/path/to/tmux-debug-mcp", str(ROOT)))

    shell = ["develop", ".#sandbox", "--no-write-lock-file", "--command"]
    assert "usage: project-sandbox" in output(*shell, "project-sandbox", "--help", cwd=tmp_path)


def test_sandboxes_of_the_page_evaluate_and_protect_what_it_says(tmp_path: Path) -> None:
    closed, with_ports, keyed = fenced("nix", NETWORK)
    [protected] = fenced("nix", PROTECTION)
    (tmp_path / "flake.nix").write_text(
        f"""
        {{
          inputs.tmux-debug-mcp.url = "git+file://{ROOT}";
          inputs.tmux-debug-mcp.inputs.nixpkgs.follows = "nixpkgs";
          outputs = {{ nixpkgs, tmux-debug-mcp, ... }}:
            let
              pkgs = import nixpkgs {{ system = "x86_64-linux"; config.allowUnfree = true; }};
              inherit (tmux-debug-mcp.lib.mkLib pkgs) mkSandbox profiles;
            in
            {{
              text = builtins.toJSON {{
                closed = ({closed}).drvPath;
                keyed = ({keyed}).drvPath;
                withPorts = ({with_ports}).drvPath;
                isDefault = (mkSandbox {{ {protected} }}).drvPath == (mkSandbox {{ }}).drvPath;
              }};
            }};
        }}"""
    )

    found = json.loads(output("eval", "--raw", "--no-write-lock-file", ".#text", cwd=tmp_path))
    assert found["isDefault"]
    assert len({found["closed"], found["keyed"], found["withPorts"]}) == 3


def test_line_for_a_sandbox_is_the_one_that_is_evaluated() -> None:
    [line] = fenced("nix", NIX)[-1].splitlines()

    assert f"({line})" in (HERE / "sandbox.nix").read_text()


def test_commands_for_a_sandbox_start_it(tmp_path: Path) -> None:
    commands = fenced("console", SANDBOX)[0].splitlines()
    assert [line.partition(" -- ")[0] for line in commands] == ["$ nix run .#sandbox"] * 2

    assert "usage: tmux-debug-sandbox" in output("run", ".#sandbox", "--", "--help")
    refused = nix("run", ".#sandbox", "--", str(tmp_path / "none"), "make", "test")
    assert (refused.returncode, "is not a directory" in refused.stderr) == (2, True)
    output("build", ".#sandbox.image", "--out-link", str(tmp_path / "result"))
    with subprocess.Popen([str(tmp_path / "result")], stdout=subprocess.PIPE) as image:
        names = subprocess.check_output(["tar", "-t"], stdin=image.stdout, text=True).split()
    assert "manifest.json" in names


def test_development_shell_tests_the_working_tree() -> None:
    shell = ["develop", "--command"]
    where = output(
        *shell, "python3", "-c", "import tmux_debug_mcp; print(tmux_debug_mcp.__file__)"
    ).strip()
    assert where == str(ROOT / "tmux_debug_mcp" / "__init__.py")
    assert "all 1 passed" in output(*shell, "tests/tmux-mcp/run-integration.sh", "create_pane")
    assert " passed" in output(
        *shell, "./dev", "test", "tests/unit/test_keys.py", "tests/stdio/test_protocol.py"
    )
    assert "Success: no issues found" in output(*shell, "./dev", "check")


def test_package_brings_its_tmux_and_nothing_of_its_tests(package: Path) -> None:
    closure = output("path-info", "--recursive", str(package)).split()
    names = {re.sub(r"^/nix/store/\w+-", "", path).partition("-")[0] for path in closure}

    assert {"tmux", "mcp", "orjson"} <= names
    assert not {"pytest", "hypothesis", "fish", "zsh", "flit"} & names
