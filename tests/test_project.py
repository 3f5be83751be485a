"""Files that repeat facts of the project are consistent: the lock, the hooks, the limits."""

import re
import tomllib
from pathlib import Path

from indexing.cli.build import COMPILED
from tests.test_layers import MAX_COMPLEXITY, MAX_LINES

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_lock_has_an_exact_version_of_each_dependency() -> None:
    """To repair: `make lock`."""
    pins = (ROOT / "requirements-ci.lock").read_text().splitlines()
    assert not [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.+!]+", pin)]
    pinned = {normalised(pin.partition("==")[0]) for pin in pins}
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    required = [*PROJECT["build-system"]["requires"], *project["dependencies"]]
    required += [*extras["dev"], *extras["notebook"], *extras["xla"]]
    required += [*extras["dask"], *extras["docs"], *extras["triton"], *extras["browser"]]
    names = {normalised(re.split(r"[\[<>=~! ]", requirement)[0]) for requirement in required}
    assert names - {project["name"]} <= pinned


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_hooks_run_the_tools_of_make_check() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    entries = re.findall(r"entry: \.venv/bin/(.*)", hooks)
    (recipe,) = re.findall(r"^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    commands = re.findall(r"\$\(BIN\)/(.*)", recipe)
    assert [entry.replace(" --force-exclude", "") for entry in entries] == [
        command.replace(" --check", "") for command in commands
    ]


def test_the_compiled_modules_are_those_of_the_wheel() -> None:
    """`--version` reports whether these are compiled."""
    hook = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["mypyc"]
    files = [f"{name.replace('.', '/')}.py" for name in COMPILED]
    assert hook["include"] == files
    assert all((ROOT / file).exists() for file in files)


def test_wheels_are_built_for_the_declared_versions_of_python() -> None:
    project = PROJECT["project"]
    declared = re.findall(r"Python :: 3\.(\d+)", "\n".join(project["classifiers"]))
    assert project["requires-python"] == f">=3.{declared[0]}"
    assert PROJECT["tool"]["cibuildwheel"]["build"] == [f"cp3{minor}-*" for minor in declared]


def test_contributing_states_the_limits() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    assert f"at most {MAX_LINES} lines" in page
    assert f"at most {MAX_COMPLEXITY}" in page
    assert PROJECT["tool"]["ruff"]["lint"]["mccabe"]["max-complexity"] == MAX_COMPLEXITY
