"""Windows of index spaces and their complements as disjoint pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Affine, Expr, as_expr


@dataclass(frozen=True, slots=True)
class WindowConstraints:
    """Constraints along one dimension: inside a window, and the disjoint pieces outside of it."""

    inside: tuple[Constraint, ...]
    outside: tuple[tuple[Constraint, ...], ...]

    @property
    def is_empty(self) -> bool:
        """True if the window is empty."""
        return any(constraint.is_false for constraint in self.inside)


def window(offset: Affine, size: int, low: int, high: int, step: int = 1) -> WindowConstraints:
    """Constraints on an offset in ``[low, high]``; inside are ``0, step, .. (size − 1)·step``.

    >>> from simplifier.linear import variable
    >>> for piece in window(variable("d0", 0, 9) - 3, 4, -3, 6).outside:
    ...     print(*piece)
    d0 - 3 in [-3, -1]
    d0 - 3 in [4, 6]
    """
    expr = as_expr(offset)
    if size == 0:
        return WindowConstraints((Constraint(expr, 1, 0),), ((),))
    last = (size - 1) * step
    within = Constraint(expr, 0, last)
    before, after = Constraint(expr, low, -1), Constraint(expr, last + 1, high)
    outside = [(piece,) for piece in (before, after) if piece.lower <= piece.upper]
    if step == 1:
        return WindowConstraints((within,), tuple(outside))
    between = within, Constraint(expr % step, 1, step - 1)
    return WindowConstraints(
        _on_grid(within, expr, step), (*outside, *([between] if size > 1 else []))
    )


def _on_grid(within: Constraint, expr: Expr, step: int) -> tuple[Constraint, ...]:
    return within, Constraint(expr % step, 0, 0)


def complement(windows: Sequence[WindowConstraints]) -> Iterator[tuple[Constraint, ...]]:
    """Yield the constraints of disjoint pieces that cover the complement of a window.

    A piece is outside along one dimension, inside along all earlier dimensions, and unconstrained
    along later dimensions.
    """
    if any(w.is_empty for w in windows):
        yield ()
        return
    inside: tuple[Constraint, ...] = ()
    for w in windows:
        for outside in w.outside:
            piece = (*inside, *outside)
            if not any(constraint.is_false for constraint in piece):
                yield piece
        inside = (*inside, *w.inside)


def complement_maps(
    windows: Sequence[WindowConstraints],
    exact: bool,
    dims: Sequence[Variable],
    results: Sequence[Affine],
    runtime: Sequence[RuntimeVariable] = (),
) -> tuple[IndexingMap, ...]:
    """Return maps on the complement of a window: one ``may`` map of all points, or exact pieces.

    The tuple is empty if the complement is empty.
    """
    pieces = tuple(complement(windows))
    if not pieces:
        return ()
    if not exact and any(pieces):
        return (IndexingMap.of(dims, results, grade="may"),)
    return tuple(
        [IndexingMap.of(dims, results, runtime=runtime, constraints=piece) for piece in pieces]
    )
