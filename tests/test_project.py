"""Files that repeat facts of the project are consistent: the lock, the hooks, the limits."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from indexing.cli.build import COMPILED
from tests.test_layers import MAX_COMPLEXITY, MAX_LINES

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_lock_has_an_exact_version_of_each_dependency() -> None:
    """To repair: `make lock`."""
    pins = (ROOT / "requirements-ci.lock").read_text().splitlines()
    assert not [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.+!]+", pin)]
    pinned = {normalise(pin.partition("==")[0]) for pin in pins}
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    required = [*PROJECT["build-system"]["requires"], *project["dependencies"]]
    required += [*extras["dev"], *extras["notebook"], *extras["xla"]]
    required += [*extras["dask"], *extras["docs"], *extras["triton"], *extras["browser"]]
    names = {normalise(re.split(r"[\[<>=~! ]", requirement)[0]) for requirement in required}
    assert names - {project["name"]} <= pinned


def normalise(name: str) -> str:
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


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_fields_name_classes_above_them(name: str) -> None:
    """A compiled `NamedTuple` that names a class further down ends the process on import."""
    tree = ast.parse((ROOT / f"{name.replace('.', '/')}.py").read_text())
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for number, node in enumerate(classes):
        if any(ast.unparse(base) == "NamedTuple" for base in node.bases):
            fields = [line.annotation for line in node.body if isinstance(line, ast.AnnAssign)]
            named = {ast.unparse(field) for field in fields}
            assert not named & {later.name for later in classes[number + 1 :]}


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


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
NOT_IN_CI_RUN = {
    "make site": "tests/test_site.py builds the site",
    "python -m pip install cibuildwheel==4.3.3": "needs the images of a container registry",
    "python -m cibuildwheel --output-dir dist": "needs the images of a container registry",
    "python -m pip install build": "make check-wheels builds the wheels with pip",
    "python -m build": "make check-wheels builds the wheels with pip",
    "python -m pip install dist/*.whl": "make check-wheels installs the wheels",
    "python .ci/check_wheel.py interpreted": "make check-wheels runs it",
    "python -m pip install -e .[dev,xla]": "Windows",
    'python -m pytest -n auto --dist worksteal -m "not slow"': "Windows",
}
"""Steps of workflows that `.ci/run` does not run, each with the reason."""


def steps_of(workflow: Path) -> list[str]:
    """Return the shell commands of a workflow."""
    jobs: dict[str, Any] = yaml.safe_load(workflow.read_text())["jobs"]
    return [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]


def test_each_step_of_a_workflow_is_run_by_ci_run_or_has_a_reason() -> None:
    ci = (ROOT / ".ci" / "run").read_text()
    targets = set(re.findall(r"^run (\S+)$", ci, re.M))
    steps = [step for workflow in WORKFLOWS for step in steps_of(workflow)]
    others = {step for step in steps if not targets >= targets_of(step)}
    assert others == set(NOT_IN_CI_RUN)


def targets_of(step: str) -> set[str]:
    """Return the targets that a step makes; another step is its own target."""
    if not step.startswith("make "):
        return {step}
    return {word for word in step.split()[1:] if "=" not in word}


def test_workflows_test_the_declared_versions_of_python() -> None:
    declared = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == declared
    assert jobs["windows"]["strategy"]["matrix"]["python"] == declared


@pytest.mark.parametrize("file", ["CITATION.cff", "CHANGELOG.md", "docs/man/hlo-indexing.1"])
def test_files_state_the_version_of_the_project(file: str) -> None:
    version = PROJECT["project"]["version"]
    stated = {
        "CITATION.cff": r"^version: (\S+)$",
        "CHANGELOG.md": r"^## (\d\S+)$",
        "docs/man/hlo-indexing.1": r'"hlo-indexing (\S+)"$',
    }
    statement = re.search(stated[file], (ROOT / file).read_text(), re.M)
    assert statement
    assert statement[1] == version


def test_the_changelog_fits_on_two_pages() -> None:
    """A page has about 500 words.  The fragments of changelog.d/ wait for the next release."""
    section = (ROOT / "CHANGELOG.md").read_text().partition("\n## ")[2].partition("\n## ")[0]
    assert 100 < len(section.split()) <= 1000


def test_forms_for_issues_have_distinct_fields() -> None:
    """GitHub refuses a form whose ids or labels repeat."""
    forms = [p for p in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if p.stem != "config"]
    for form in forms:
        fields = yaml.safe_load(form.read_text())["body"]
        for values in ([f["id"] for f in fields], [f["attributes"]["label"] for f in fields]):
            assert len(set(values)) == len(values), form
