"""``maps --verify`` with maps that isl can neither prove nor disprove within its budget."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from indexing import CertificateError, cli, parse_map
from indexing.maps import certificate
from indexing.maps.equality import difference
from indexing.maps.indexing_map import Difference

MODULE = """
ENTRY main {
  p = f32[11] parameter(0)
  zero = f32[] parameter(1)
  wide = f32[16] pad(p, zero), padding=2_3
  part = f32[6] slice(wide), slice={[1:12:2]}
  ROOT out = f32[3,2] reshape(part)
}
"""
BEYOND = "beyond the budget of 3 isl operations"

Run = Callable[..., tuple[int, str, list[str]]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``maps`` on the module above; return status, output, lines of standard error."""
    monkeypatch.chdir(tmp_path)
    Path("m.hlo").write_text(MODULE)

    def run(*arguments: str) -> tuple[int, str, list[str]]:
        status = cli.run(["maps", "m.hlo", *arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err.splitlines()

    return run


@pytest.mark.parametrize("selection", [[], ["--all"], ["-i", "part"]])
def test_maps_that_isl_cannot_decide_are_printed_with_a_note(
    run: Run, monkeypatch: pytest.MonkeyPatch, selection: list[str]
) -> None:
    expected = run("--to", "parameters", *selection)[1]
    monkeypatch.setattr(certificate, "difference", partial(difference, budget=3))
    status, out, notes = run("--to", "parameters", "--verify", *selection)
    assert (status, out) == (0, expected)
    assert any(
        f"isl could not decide parameter 0 (p): its map is not proved: {BEYOND}" in note
        for note in notes
    )
    assert all(note.startswith("note: m.hlo: main") for note in notes[:-1])
    assert max(map(len, notes)) < 200
    assert notes[-1].startswith("verified ")
    assert "; isl could not decide " in notes[-1]


def test_a_map_that_isl_disproves_is_an_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Difference({"d0": 0, "d1": 0}, (0, 0), "first")
    monkeypatch.setattr(certificate, "difference", lambda *_: wrong)
    status, out, errors = run("--to", "parameters", "--verify")
    assert (status, out) == (1, "")
    assert errors[0].startswith("error[verify]: m.hlo: main")


def test_python_raises_for_a_map_that_isl_cannot_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate, "difference", partial(difference, budget=3))
    with pytest.raises(CertificateError, match=BEYOND):
        parse_map("(d0) -> (d0), domain: d0 in [0, 15], d0 - 2 in [0, 10]").simplify(certify=True)
