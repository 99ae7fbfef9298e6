"""Fixtures: hostpkgs with nixpkgs' own lib."""

import shutil
from pathlib import Path

import pytest
from nix.flake import HOSTPKGS, published


@pytest.fixture(scope="session")
def with_real_lib(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of hostpkgs in which `lib` is that of nixpkgs."""
    copy = tmp_path_factory.mktemp("nixpkgs") / "hostpkgs"
    shutil.copytree(HOSTPKGS, copy)
    shutil.copytree(published("nixpkgs-lib"), copy / "nixpkgs-lib")
    shutil.copy(HOSTPKGS.parent / "published" / "lib.nix", copy / "lib.nix")
    return copy
