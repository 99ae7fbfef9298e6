"""The flake with a real nixpkgs, where the directory that NIX_SOURCES names has one."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from nix.flake import ROOT, published

from tmux_debug_mcp.options import OPTIONS

PUBLISHED = ROOT / "tests" / "nix" / "published"
_CONFIG = """experimental-features = nix-command
build-users-group =
substituters =
"""


@pytest.fixture(scope="module")
def nix_env() -> dict[str, str]:
    """Return the environment of a Nix that a nixpkgs of today needs; Debian 12 has an older one."""
    script = ROOT / "tests" / "nix" / "nix-of.sh"
    directory = subprocess.run([script], stdout=subprocess.PIPE, text=True, check=True).stdout
    return os.environ | {
        "PATH": f"{directory.strip()}:{os.environ['PATH']}",
        "NIX_CONFIG": _CONFIG,
    }


def evaluated(
    env: dict[str, str], file: str, attribute: str = "", function: str = "", **arguments: Path | str
) -> subprocess.CompletedProcess[str]:
    given = " ".join(f"{name} = {path};" for name, path in arguments.items())
    expression = f"{function} (import {PUBLISHED / file} {{ {given} }}){attribute}"
    command = ["nix", "eval", "--impure", "--json", "--expr", expression]
    return subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=600, check=False
    )


def value(
    env: dict[str, str], file: str, attribute: str = "", function: str = "", **arguments: Path | str
) -> Any:  # noqa: ANN401
    done = evaluated(env, file, attribute, function, **arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("config", ["{ }", "{ allowAliases = false; }"])
def test_all_outputs_evaluate(nix_env: dict[str, str], config: str) -> None:
    outputs = value(nix_env, "outputs.nix", nixpkgs=published("nixpkgs"), config=config)

    missing = {name for name, path in outputs.items() if path is None}
    print("not in this nixpkgs:", missing or "nothing")
    assert missing <= {"sandbox with an agent"}
    assert len(outputs) >= 20
    assert all(path.startswith("/nix/store/") for path in outputs.values() if path)


def test_evaluation_is_as_expected(nix_env: dict[str, str]) -> None:
    evaluation = ".checks.x86_64-linux.evaluation"
    nixpkgs = published("nixpkgs")

    assert value(nix_env, "nixpkgs.nix", f"{evaluation}.failed", nixpkgs=nixpkgs) == "[]"


def test_errors_say_what_they_say_with_the_stand_in(nix_env: dict[str, str]) -> None:
    errors = ".checks.x86_64-linux.evaluation.errors"
    nixpkgs = published("nixpkgs")
    function = "builtins.mapAttrs (_: error: error.message)"
    messages = value(nix_env, "nixpkgs.nix", errors, function, nixpkgs=nixpkgs)
    assert len(messages) >= 50

    for name, message in messages.items():
        failed = evaluated(nix_env, "nixpkgs.nix", f"{errors}.{name}.call", nixpkgs=nixpkgs)
        assert failed.returncode == 1
        assert message in " ".join(failed.stderr.split()), name


def test_wrapix_takes_our_server_and_we_its_profiles(
    nix_env: dict[str, str], tmp_path: Path
) -> None:
    wrapix = tmp_path / "wrapix"
    shutil.copytree(published("wrapix"), wrapix)
    (wrapix / "lib" / "mcp" / "default.nix").write_text(
        "{ pkgs }: { tmux = pkgs.tmux-debug-mcp.mcpServer { inherit pkgs; }; }"
    )

    made = value(nix_env, "wrapix.nix", nixpkgs=published("nixpkgs"), wrapix=wrapix)

    assert set(made) == {"chosen", "atRunTime", "profile"}
    assert made["chosen"] != made["atRunTime"]
    # What its own variables set for a server named `tmux`.
    entrypoint = (wrapix / "lib" / "sandbox" / "linux" / "entrypoint.sh").read_text()
    variables = set(re.findall(r"\.env\.(\w+) = \$v", entrypoint))
    assert variables == {"TMUX_DEBUG_AUDIT", "TMUX_DEBUG_AUDIT_FULL"}
    assert variables <= {option.variable for option in OPTIONS}


def built(env: dict[str, str], expression: str) -> list[str]:
    """Build this over the programs of this Debian 12, with nixpkgs' own functions."""
    # With nixpkgs' own sandbox, the programs of the host would not be there.
    env = env | {"NIX_CONFIG": f"{_CONFIG}sandbox = false\n"}
    nixpkgs = published("nixpkgs")
    whole = f"""
        let
          pkgs = import {PUBLISHED}/native.nix {{ nixpkgs = {nixpkgs}; }};
          self = import {PUBLISHED}/nixpkgs.nix {{
            nixpkgs = {nixpkgs};
            legacyPackages.x86_64-linux = pkgs;
          }};
        in
        {expression}
    """
    command = ["nix", "build", "--impure", "--no-link", "--print-out-paths", "--print-build-logs"]
    command += ["--expr", whole]
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr[-10_000:]
    return done.stdout.split()


def test_package_builds_with_nixpkgs_own_functions(nix_env: dict[str, str]) -> None:
    """With the wheels of the SDK, and an idna of 2026."""
    package = f"pkgs.callPackage {ROOT}/lib/mcp/tmux/mcp-server.nix {{ }}"
    assert built(nix_env, f"let package = {package}; in [ package package.tests.demo ]")


def test_environment_of_a_shell_has_its_libraries(nix_env: dict[str, str]) -> None:
    shell = """pkgs.mkShell {
      buildInputs = [ (pkgs.runCommand "library" { } "mkdir -p $out/include $out/lib") ];
      GREETING = "hello\nfrom the shell";
      shellHook = "exit 1";
    }"""
    (made,) = built(
        nix_env, f"import {ROOT}/lib/sandbox/shell.nix {{ inherit pkgs; shells = [ ({shell}) ]; }}"
    )
    lines = Path(made, "shell-environment").read_text().split("\0")
    found = dict(line.split("=", 1) for line in lines if line)
    assert found["GREETING"] == "hello\nfrom the shell"
    assert re.search(r"-isystem /nix/store/\w+-library/include", found["NIX_CFLAGS_COMPILE"])
    assert found.keys().isdisjoint({"HOME", "TMPDIR", "shellHook", "buildInputs", "stdenv"})


def test_sandbox_built_with_nixpkgs_own_functions_runs(nix_env: dict[str, str]) -> None:
    (sandbox,) = built(nix_env, "self.packages.x86_64-linux.sandbox")
    env = nix_env | {"SANDBOX_BASE": f"{sandbox}/bin/tmux-debug-sandbox"}
    script = ROOT / "tests" / "tmux-mcp" / "run-e2e.sh"
    done = subprocess.run(
        [script, "mcp_in_sandbox", "sandbox_debug_profile"],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
