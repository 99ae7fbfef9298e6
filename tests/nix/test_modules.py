"""The modules for home-manager, flake-parts, devenv and mcp-servers-nix, in these as published."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from nix.flake import ROOT, evaluate, fenced, nix, output, published, tools_of

from tmux_debug_mcp import __version__
from tmux_debug_mcp.tools import debug

NIX = (ROOT / "docs" / "nix.md").read_text()
# The last two are for wrapix and for a sandbox of ours, the first for a flake without modules.
IN_HOME, IN_FLAKE_PARTS, IN_DEVENV, IN_MCP_SERVERS = fenced("nix", NIX)[1:-2]
CONFIGURATIONS = {
    "home-manager": IN_HOME,
    "devenv": IN_DEVENV,
    "mcp-servers-nix": "{ mcp-servers-nix, pkgs, tmux-debug-mcp }:\n" + IN_MCP_SERVERS,
}
AGENT = ".claude/agents/tmux-debug.md"


@dataclass(frozen=True)
class Evaluation:
    """The flake in tests/nix/published, with one configuration."""

    directory: Path
    nixpkgs: Path

    def configure(self, text: str, options: dict[str, Any] | None = None) -> None:
        """Set the configuration, and the options that it has."""
        (self.directory / "configuration.nix").write_text(text)
        (self.directory / "options.json").write_text(json.dumps(options or {}))

    @property
    def overrides(self) -> list[str]:
        inputs = {
            "tmux-debug-mcp": f"git+file://{ROOT}",
            "home-manager": f"path:{published('home-manager')}",
            "mcp-servers-nix": f"path:{published('mcp-servers-nix')}",
        }
        words = ["--no-write-lock-file"]
        for name, url in inputs.items():
            words += ["--override-input", name, url]
        return words

    def value(self, attribute: str) -> Any:  # noqa: ANN401
        return evaluate(
            f"path:{self.directory}#{attribute}", "x: x", *self.overrides, nixpkgs=self.nixpkgs
        )

    def built(self, attribute: str) -> Path:
        """Return the path in the store of what an attribute builds."""
        link = self.directory.parent / "built"
        output(
            "build",
            f"path:{self.directory}#{attribute}",
            "--out-link",
            str(link),
            *self.overrides,
            nixpkgs=self.nixpkgs,
        )
        return link.resolve()

    def error(self, attribute: str) -> str:
        """Return the message of an evaluation that fails, in one line."""
        failed = nix(
            "eval",
            "--json",
            f"path:{self.directory}#{attribute}",
            *self.overrides,
            nixpkgs=self.nixpkgs,
        )
        assert failed.returncode == 1, failed.stdout
        return " ".join(failed.stderr.split())


@pytest.fixture
def evaluation(tmp_path: Path, with_real_lib: Path) -> Evaluation:
    directory = tmp_path / "flake"
    shutil.copytree(ROOT / "tests" / "nix" / "published", directory)
    return Evaluation(directory, with_real_lib)


def without_empty(config: dict[str, Any]) -> dict[str, Any]:
    """Return a client's configuration as modules write it, which leave out what is empty."""
    return {
        "mcpServers": {
            name: {key: value for key, value in server.items() if value}
            for name, server in config["mcpServers"].items()
        }
    }


def with_settings(text: str, *lines: str) -> str:
    """Return a configuration of the documentation with these lines in place of its settings."""
    [settings] = [line for line in text.splitlines() if "settings." in line]
    return text.replace(settings.strip(), "\n".join(lines))


def in_home(text: str = IN_HOME, more: str = "") -> str:
    """Return a configuration for home-manager, here without Claude Code's package.

    Args:
        text: The configuration.
        more: More lines for it.
    """
    enabled = "programs.claude-code.enable = true;"
    assert enabled in text
    return text.replace(enabled, f"{enabled}\n  programs.claude-code.package = null;\n  {more}")


def test_home_manager_gives_claude_code_the_subagent_that_a_sandbox_has(
    evaluation: Evaluation,
) -> None:
    evaluation.configure(in_home(), {"audit": "~/debug-audit.log"})
    made = evaluation.value("home-manager")

    assert made["files"] == {AGENT: evaluation.value("expected.agent")}
    assert [Path(package).name.partition("-")[2] for package in made["packages"]] == [
        f"tmux-debug-mcp-{__version__}"
    ]
    assert made["warnings"] == []


def test_home_manager_refuses_a_subagent_without_claude_code(evaluation: Evaluation) -> None:
    evaluation.configure(IN_HOME.replace("claude-code.enable = true", "claude-code.enable = false"))

    assert '`programs.tmux-debug-mcp.scope` is "subagent", which is for Claude Code.' in (
        evaluation.error("home-manager.files")
    )


def test_home_manager_gives_clients_the_server_for_the_main_session(
    evaluation: Evaluation,
) -> None:
    text = with_settings(IN_HOME, 'scope = "main";', "settings.allowKill = true;")
    shared = "enableMcpIntegration = true;"
    evaluation.configure(in_home(text, f"programs.claude-code.{shared}"), {"allowKill": True})
    files = evaluation.value("home-manager.files")
    expected = without_empty(evaluation.value("expected.config"))
    plugin = ".claude/skills/claude-code-home-manager"

    assert files.keys() == {".config/mcp/mcp.json", plugin}
    of_all = evaluation.built('home-manager.files.".config/mcp/mcp.json"')
    assert json.loads(of_all.read_text()) == expected
    of_claude = evaluation.built(f'home-manager.files."{plugin}"') / ".mcp.json"
    assert json.loads(of_claude.read_text()) == expected


def test_another_package_is_the_one_that_is_started(evaluation: Evaluation) -> None:
    text = with_settings(IN_HOME, "package = pkgs.tmux;").replace("inputs,", "inputs, pkgs,")
    evaluation.configure(in_home(text))

    assert '-tmux-debian/bin/tmux"' in evaluation.value("home-manager.files")[AGENT]


def test_modules_that_are_not_enabled_make_nothing(evaluation: Evaluation) -> None:
    enabled = "programs.tmux-debug-mcp = {\n    enable = true;"
    disabled = enabled.replace("true", "false")
    evaluation.configure(in_home(IN_HOME.replace(enabled, disabled)))
    assert evaluation.value("home-manager.files") == {}
    evaluation.configure(IN_DEVENV.replace(enabled, disabled))
    assert evaluation.value("devenv") == {"files": {}, "packages": []}


def test_devenv_has_the_server_for_the_main_session_or_the_subagent(
    evaluation: Evaluation,
) -> None:
    evaluation.configure(IN_DEVENV, {"toolsets": "debug,terminal"})
    files = evaluation.value("devenv.files")
    assert files.keys() == {".mcp.json"}
    assert json.loads(files[".mcp.json"]) == without_empty(evaluation.value("expected.config"))

    evaluation.configure(IN_DEVENV.replace('"main"', '"subagent"'), {"toolsets": "debug,terminal"})
    assert evaluation.value("devenv.files") == {AGENT: evaluation.value("expected.agent")}


def test_mcp_servers_nix_makes_the_configuration_of_mcp_config(evaluation: Evaluation) -> None:
    evaluation.configure(CONFIGURATIONS["mcp-servers-nix"], {"dropEnv": "AWS_*,GITHUB_TOKEN"})
    made = json.loads(evaluation.built("mcp-servers-nix").read_text())
    # A server without a type is stdio.
    made["mcpServers"]["tmux-debug"]["type"] = "stdio"

    assert without_empty(made) == without_empty(evaluation.value("expected.config"))


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('settings.audti = "a.log";', "settings.audti' does not exist"),
        ("settings.audit = 1;", "settings.audit' is not of type `null or string'"),
        ("settings.audit = ./a.log;", "settings.audit' is not of type `null or string'"),
        ('settings.allowKill = "yes";', "settings.allowKill' is not of type `null or boolean'"),
    ],
)
def test_wrong_name_or_type_is_an_error_with_the_option(
    name: str, line: str, message: str, evaluation: Evaluation
) -> None:
    evaluation.configure(with_settings(CONFIGURATIONS[name], line))
    attribute = name if name == "mcp-servers-nix" else f"{name}.files"
    option = "tmux-debug" if name == "mcp-servers-nix" else "tmux-debug-mcp"

    assert f"option `programs.{option}.{message}" in evaluation.error(attribute)


def test_scope_is_one_of_two(evaluation: Evaluation) -> None:
    evaluation.configure(with_settings(IN_HOME, 'scope = "all";'))

    assert 'scope\' is not of type `one of "subagent", "main"\'' in evaluation.error(
        "home-manager.files"
    )


@dataclass(frozen=True)
class Project:
    """A directory with a flake of flake-parts, and its shell."""

    directory: Path
    nixpkgs: Path

    def enter(self, *command: str) -> subprocess.CompletedProcess[str]:
        done = nix(
            "develop",
            "--no-write-lock-file",
            "--override-input",
            "flake-parts",
            f"path:{published('flake-parts')}",
            "--command",
            *command,
            cwd=self.directory,
            nixpkgs=self.nixpkgs,
        )
        assert done.returncode == 0, done.stderr
        return done

    def configure(self, text: str) -> None:
        here = text.replace("/path/to/tmux-debug-mcp", str(ROOT))
        (self.directory / "flake.nix").write_text(here)


@pytest.fixture
def project(tmp_path: Path, with_real_lib: Path) -> Project:
    directory = tmp_path / "project"
    directory.mkdir()
    return Project(directory, with_real_lib)


IN_MAIN = IN_FLAKE_PARTS.replace("enable = true;", 'enable = true;\n            scope = "main";')


def test_flake_parts_shell_links_the_subagent(project: Project, evaluation: Evaluation) -> None:
    project.configure(IN_FLAKE_PARTS)
    assert "tmux-debug-mcp 0." in project.enter("tmux-debug-mcp", "--version").stdout
    evaluation.configure("", {"logDir": ".debug-logs"})

    assert (project.directory / AGENT).read_text() == evaluation.value("expected.agent")
    assert not (project.directory / ".mcp.json").exists()


async def test_flake_parts_shell_links_a_configuration_that_starts_the_server(
    project: Project, environment: dict[str, str]
) -> None:
    project.configure(IN_FLAKE_PARTS)
    project.enter("true")
    project.configure(IN_MAIN)
    project.enter("true")

    # The link of the other scope is gone.
    assert not (project.directory / AGENT).is_symlink()
    [server] = json.loads((project.directory / ".mcp.json").read_text())["mcpServers"].values()
    assert server["env"] == {"TMUX_DEBUG_LOG_DIR": ".debug-logs"}
    assert await tools_of(server, environment) == [tool.name for tool in debug.TOOLSET.tools]


def test_flake_parts_shell_leaves_files_that_are_not_its_own(project: Project) -> None:
    project.configure(IN_MAIN)
    (project.directory / ".mcp.json").write_text("{}")
    entered = project.enter("true")

    assert ".mcp.json already exists and was kept." in entered.stderr
    assert (project.directory / ".mcp.json").read_text() == "{}"


def test_flake_parts_error_names_the_option(project: Project) -> None:
    project.configure(with_settings(IN_FLAKE_PARTS, 'settings.audti = "a.log";'))
    with pytest.raises(
        AssertionError, match=r"programs\.tmux-debug-mcp\.settings\.audti' does not"
    ):
        project.enter("true")
