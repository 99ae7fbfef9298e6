"""The flake with nixpkgs' own lib in place of that of hostpkgs."""

from pathlib import Path

import pytest
from nix.flake import HOSTPKGS, SYSTEM, evaluate, nix, output

# Each is a derivation, whose hash has all in it that was evaluated for it.
OUTPUTS = [
    *(
        f"packages.{system}.{name}"
        for system in ("x86_64-linux", "aarch64-linux")
        for name in ("tmux-debug-mcp", "sandbox", "sandbox.image")
    ),
    f"checks.{SYSTEM}.evaluation",
    f"checks.{SYSTEM}.package",
    f"checks.{SYSTEM}.package-where-mcp-is-1",
    f"checks.{SYSTEM}.configuration",
    f"devShells.{SYSTEM}.default",
]


@pytest.mark.parametrize("name", OUTPUTS)
def test_nixpkgs_own_lib_makes_the_same_derivation(name: str, with_real_lib: Path) -> None:
    attribute = f".#{name}.drvPath"

    assert evaluate(attribute, nixpkgs=with_real_lib) == evaluate(attribute, nixpkgs=HOSTPKGS)


def test_evaluation_tests_pass_with_nixpkgs_own_lib(with_real_lib: Path) -> None:
    output("build", f".#checks.{SYSTEM}.evaluation", "--no-link", nixpkgs=with_real_lib)


def test_each_error_is_the_same_with_nixpkgs_own_lib(with_real_lib: Path) -> None:
    errors = f".#checks.{SYSTEM}.evaluation.passthru.errors"
    messages = evaluate(
        errors, "errors: builtins.mapAttrs (_: error: error.message) errors", nixpkgs=with_real_lib
    )

    assert len(messages) >= 10
    for name, message in messages.items():
        failed = nix("eval", "--json", f"{errors}.{name}.call", nixpkgs=with_real_lib)
        assert failed.returncode == 1
        assert message in " ".join(failed.stderr.split()), name
