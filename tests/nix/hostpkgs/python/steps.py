"""Steps of a build of a Python package: build, install, check."""

import email
import importlib.metadata
import sys
import tomllib
from importlib import import_module
from pathlib import Path


def build() -> None:
    """Build a wheel of the project in the current directory, and print its path."""
    settings = tomllib.loads(Path("pyproject.toml").read_text())["build-system"]
    Path("dist").mkdir()
    print(Path("dist", import_module(settings["build-backend"]).build_wheel("dist")).absolute())


def install(wheel: str, out: str) -> None:
    """Install a wheel."""
    destinations, sources = (
        import_module("installer.destinations"),
        import_module("installer.sources"),
    )
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    modules = f"{out}/lib/{version}/site-packages"
    places = {
        "purelib": modules,
        "platlib": modules,
        "scripts": f"{out}/bin",
        "data": out,
        "headers": f"{out}/include",
    }
    destination = destinations.SchemeDictionaryDestination(
        places, interpreter=sys.executable, script_kind="posix", bytecode_optimization_levels=[0]
    )
    with sources.WheelFile.open(wheel) as source:
        import_module("installer").install(source, destination, additional_metadata={})


def check(out: str) -> None:
    """Check that what the package requires is there, in a version that it allows."""
    requirements = import_module("packaging.requirements")
    for metadata in Path(out).glob("lib/*/site-packages/*.dist-info/METADATA"):
        for text in email.message_from_string(metadata.read_text()).get_all("Requires-Dist", []):
            requirement = requirements.Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                version = importlib.metadata.version(requirement.name)
                if not requirement.specifier.contains(version, prereleases=True):
                    sys.exit(
                        f"{metadata.parent.name} requires {requirement}, and there is {version}"
                    )


match sys.argv[1:]:
    case ["build"]:
        build()
    case ["install", wheel, out]:
        install(wheel, out)
    case ["check", out]:
        check(out)
