"""Completion at the shell, by the protocol of `click` and in real shells."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hlo
from indexing.cli.completion import full_names, instruction_names, operand_names

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "attention.opt.hlo"
FUSIONS = ["transpose_copy_fusion.2", "transpose_copy_fusion.1", "transpose_copy_fusion"]
HEAVY = ("numpy", "sympy", "islpy", "rich", "hlo.modules.module", "indexing.ops.base")

Environment = dict[str, str]


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """An environment with the command, in whose folder is ``m.hlo``."""
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "hlo-indexing"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m indexing.cli "$@"\n')
    script.chmod(0o755)
    shutil.copy(EXAMPLE, tmp_path / "m.hlo")
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}


def ran(command: list[str], environment: Environment) -> str:
    done = subprocess.run(
        command,
        env=environment,
        cwd=environment["HOME"],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.stderr == ""
    return done.stdout


def protocol(shell: str, line: str, environment: Environment) -> list[str]:
    """Return the lines that the command answers to a shell; the cursor is at the end of `line`."""
    words = line.split(" ")
    place = words[-1] if shell == "fish" else str(len(words) - 1)
    asked = {"_HLO_INDEXING_COMPLETE": f"{shell}_complete", "COMP_WORDS": line, "COMP_CWORD": place}
    return ran(["hlo-indexing"], environment | asked).splitlines()


def bash(line: str, environment: Environment) -> list[str]:
    lines = protocol("bash", line, environment)
    return [text.removeprefix("plain,") for text in lines]


# fmt: off
LINES = [
    ("hlo-indexing ma",                               ["maps"]),
    ("hlo-indexing maps --dir",                       ["--direction"]),
    ("hlo-indexing maps --direction b",               ["both"]),
    ("hlo-indexing maps --kind tr",                   ["transposing"]),
    ("hlo-indexing maps --color a",                   ["auto", "always"]),
    ("hlo-indexing maps m.hlo -i transpose_c",        FUSIONS),
    ("hlo-indexing maps m.hlo -i %transpose_c",       [f"%{name}" for name in FUSIONS]),
    ("hlo-indexing maps m.hlo -i main.5/transpose_c", [f"main.5/{name}" for name in FUSIONS]),
    ("hlo-indexing maps m.hlo --reads transpose_c",   FUSIONS),
    ("hlo-indexing maps m.hlo --operand transpose_c", FUSIONS),
    ("hlo-indexing maps m.hlo --at 1,2 -i transpose_c", FUSIONS),
    ("hlo-indexing validate m.hlo -i transpose_c",    FUSIONS),
    ("hlo-indexing maps none.hlo -i t",               []),
    ("hlo-indexing maps bin -i t",                    []),
    ("hlo-indexing maps - -i t",                      []),
    ("hlo-indexing maps m.hlo --opcode dynamic-s",    ["dynamic-slice"]),
    ("hlo-indexing ops tri",                          ["triangular-solve"]),
    ("hlo-indexing ops dot tri",                      ["triangular-solve"]),
    ("hlo-indexing maps m.",                          ["file,m."]),
    ("hlo-indexing maps m.hlo -o ou",                 ["file,ou"]),
    ("hlo-indexing run m.hlo --inputs i",             ["file,i"]),
    ("hlo-indexing mpas m",                           ["maps", "memory"]),
    ("hlo-indexing maps m.hlo --limit ",              []),
]
# fmt: on


@pytest.mark.parametrize("line, expected", LINES)
def test_words_are_completed(line: str, expected: list[str], environment: Environment) -> None:
    assert [text for text in bash(line, environment) if text] == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_the_names_in_the_file(shell: str, environment: Environment) -> None:
    lines = protocol(shell, "hlo-indexing maps m.hlo -i transpose_c", environment)
    values = lines[1::3] if shell == "zsh" else [line.removeprefix("plain,") for line in lines]
    assert values == FUSIONS


def test_names_come_from_the_file_after_the_cursor_if_there_is_none_before(
    environment: Environment,
) -> None:
    line = {"COMP_WORDS": "hlo-indexing maps -i transpose_c m.hlo", "COMP_CWORD": "3"}
    asked = environment | line | {"_HLO_INDEXING_COMPLETE": "bash_complete"}
    assert ran(["hlo-indexing"], asked).splitlines() == [f"plain,{name}" for name in FUSIONS]


def test_completion_imports_neither_ops_nor_libraries(environment: Environment) -> None:
    report = f"import sys; print([name for name in {HEAVY} if name in sys.modules])"
    program = (
        "from indexing.cli.group import invoke\n"
        f"try: invoke([])\nexcept SystemExit: print(); {report}"
    )
    for line in ("hlo-indexing maps m.hlo -i t", "hlo-indexing maps --opcode t"):
        words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        asked = environment | words | {"_HLO_INDEXING_COMPLETE": "bash_complete"}
        out = ran([sys.executable, "-c", program], asked)
        assert out.count("plain,t") > 2
        assert out.splitlines()[-1] == "[]"


def test_a_name_is_followed_by_an_equals_sign_and_a_shape() -> None:
    text = EXAMPLE.read_text()
    import hlo

    module = hlo.parse(text)
    assert list(instruction_names(text)) == [i.name for i in module.instructions]
    assert list(full_names(text)) == [f"{i.computation.name}/{i.name}" for i in module.instructions]


# ---------------------------------------------------------------- real shells


def in_bash(line: str, environment: Environment) -> list[str]:
    words = line.split(" ")
    script = f"""
        source <(_HLO_INDEXING_COMPLETE=bash_source hlo-indexing)
        COMP_WORDS=({" ".join(words)}{' ""' if not words[-1] else ""}); COMP_CWORD={len(words) - 1}
        compopt() {{ :; }}  # works within a completion only
        _hlo_indexing_completion hlo-indexing
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    return ran(["bash", "--norc", "-c", script], environment).splitlines()


def in_fish(line: str, environment: Environment) -> list[str]:
    script = f"_HLO_INDEXING_COMPLETE=fish_source hlo-indexing | source; complete -C '{line}'"
    out = ran(["fish", "--no-config", "-c", script], environment)
    return [text.split("\t")[0] for text in out.splitlines()]


def in_zsh(line: str, environment: Environment) -> list[str]:
    """Type a line and a tab into an interactive shell, and print the buffer."""
    script = f"""
        zmodload zsh/zpty
        zpty -b z zsh -f -i
        zpty -w z 'PS1=; autoload -Uz compinit && compinit -u -D'
        zpty -w z 'eval "$(_HLO_INDEXING_COMPLETE=zsh_source hlo-indexing)"'
        zpty -w z 'show() {{ print -r -- "<""<$BUFFER>"">"; BUFFER=; zle accept-line }}'
        zpty -w z 'zle -N show'
        zpty -w z 'bindkey "^X" show; setopt nolistbeep; print -r -- rea''dy'
        zpty -r z answer '*ready*'
        zpty -w -n z $'{line}\\t\\x18'
        zpty -r z answer '*<<*>>*'
        print -r -- "${{${{answer##*<<}}%%>>*}}"
        zpty -d z
    """
    (buffer,) = ran(["zsh", "-f", "-c", script], environment).splitlines()
    return [buffer.rstrip().rpartition(" ")[2]]


SHELLS = {"bash": in_bash, "fish": in_fish, "zsh": in_zsh}


@pytest.mark.parametrize("shell, completions", SHELLS.items())
def test_shells_complete_commands_names_opcodes_and_files(
    shell: str, completions: Callable[[str, Environment], list[str]], environment: Environment
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs the shell {shell}")
    for line, expected in (
        ("hlo-indexing simp", ["simplify"]),
        ("hlo-indexing maps m.hlo -i transpose_copy_fusion.2", FUSIONS[:1]),
        ("hlo-indexing maps m.hlo --opcode dynamic-sl", ["dynamic-slice"]),
    ):
        assert completions(line, environment) == expected
    if shell != "bash":  # completes files after the function
        assert completions("hlo-indexing ls m.h", environment) == ["m.hlo"]


@pytest.mark.parametrize("name", ["attention.opt.hlo", "gpt2_tiny.opt.hlo", "rnn.pre.hlo"])
def test_the_scanned_operands_are_those_of_the_parsed_module(name: str) -> None:
    text = (ROOT / "examples" / name).read_text()
    count = 0
    for computation in hlo.parse(text).computations.values():
        for each in computation:
            if text.count(f"{each.name} = ") == 1:
                count += len(each.operands)
                assert list(operand_names(text, (each.name,))) == [o.name for o in each.operands]
    assert count > 50
    root = hlo.parse(text).entry.root
    assert list(operand_names(text)) == [operand.name for operand in root.operands]


def test_operands_are_those_of_the_instruction_before_the_cursor(environment: Environment) -> None:
    line = "hlo-indexing maps m.hlo -i dot.7 --operand "
    assert bash(line, environment) == ["param_0", "param_1"]
    assert "x.1" in bash("hlo-indexing maps m.hlo --to parameters --operand ", environment)
