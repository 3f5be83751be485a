"""Independent parts of maps: groups of variables that no expression connects."""

from __future__ import annotations

from collections.abc import Iterable

from simplifier.atoms import Variable


def connected_variables(
    variables: Iterable[Variable], together: Iterable[set[Variable]]
) -> list[set[Variable]]:
    """The finest partition of the variables that splits no set of `together`."""
    groups = [{v} for v in variables]
    for used in together:
        disjoint = [group for group in groups if group.isdisjoint(used)]
        if len(disjoint) < len(groups):
            joined = [group for group in groups if not group.isdisjoint(used)]
            groups = [*disjoint, set[Variable]().union(*joined)]
    return groups
