"""Deprecated names of maps and their answers: each still works, with a warning."""

from __future__ import annotations

import pytest

import hlo
import indexing
from indexing.maps.interchange import to_affine_map


def test_claim_is_the_old_name_of_verdict() -> None:
    with pytest.warns(DeprecationWarning, match="use indexing.maps.Verdict"):
        assert indexing.maps.Claim is indexing.Verdict


def test_says_is_the_old_name_of_reason() -> None:
    verdict = indexing.Verdict(False, "two points have the same result")
    with pytest.warns(DeprecationWarning, match=r"use Verdict\.reason"):
        assert verdict.says == verdict.reason


def test_number_is_the_old_name_of_domain_id() -> None:
    answer = indexing.output_to_input(
        hlo.parse("ENTRY e { ROOT p = f32[4] parameter(0) }").entry.root
    )
    with pytest.warns(DeprecationWarning, match=r"use Answer\.domain_id"):
        assert answer.number == answer.domain_id == 0


def test_reach_is_the_old_name_of_result_bounds() -> None:
    double = indexing.IndexingMap.over((4,), lambda d: [d[0] * 2])
    with pytest.warns(DeprecationWarning, match=r"use IndexingMap\.result_bounds"):
        assert double.reach == double.result_bounds == ((0, 6),)


def test_asked_is_the_old_name_of_the_argument_maps() -> None:
    double = indexing.IndexingMap.over((4,), lambda d: [d[0] * 2])
    with pytest.warns(DeprecationWarning, match=r"use maps=\.\."):
        assert indexing.is_injective(asked=double) is True


def test_shown_is_the_old_name_of_the_argument_indexing_map() -> None:
    double = indexing.IndexingMap.over((4,), lambda d: [d[0] * 2])
    with pytest.warns(DeprecationWarning, match=r"use indexing_map=\.\."):
        assert to_affine_map(shown=double) == "affine_map<(d0) -> (d0 * 2)>"  # type: ignore[call-arg]


def test_index_map_is_the_old_name_of_the_argument_of_lift() -> None:
    double, devices = (
        indexing.IndexingMap.over((3,), lambda d: [d[0] * 2]),
        indexing.Devices(num_partitions=2),
    )
    with pytest.warns(DeprecationWarning, match="use indexing_map="):
        assert devices.lift(index_map=double) == devices.lift(double)
