"""Deprecated names of maps and their answers: each still works, with a warning."""

from __future__ import annotations

import pytest

import indexing


def test_claim_is_the_old_name_of_verdict() -> None:
    with pytest.warns(DeprecationWarning, match="use indexing.maps.Verdict"):
        assert indexing.maps.Claim is indexing.Verdict


def test_says_is_the_old_name_of_reason() -> None:
    verdict = indexing.Verdict(False, "two points have the same result")
    with pytest.warns(DeprecationWarning, match=r"use Verdict\.reason"):
        assert verdict.says == verdict.reason
