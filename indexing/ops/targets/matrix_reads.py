"""Layouts of matrices, and what factorisations read: the facts that cuSOLVER and LAPACK share.

The last two dimensions of an array are its matrices.

Source: LAPACK's documentation of ``potrf``, ``getrf``, ``geqrf`` and ``orgqr``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlo.shapes.shape import AnyShape, Shape
from indexing.maps.indexing_map import Grade, IndexingMap, dims, ranges
from indexing.ops.base import Maps
from indexing.ops.linear_algebra import precedes
from simplifier.constraints import Constraint


def is_column_major(constraints: Sequence[AnyShape], operand: Shape) -> bool:
    """Return True if the layout of operand 0 has the rows of its matrices along memory."""
    first = constraints[0] if constraints else None
    if operand.rank < 2 or not isinstance(first, Shape) or first.rank != operand.rank:
        return False
    minor = first.layout_or_default.minor_to_major[:2]
    return minor == (operand.rank - 2, operand.rank - 1)


def triangle_reads(
    out: Shape, operand: Shape, *, lower: bool, grade: Grade = "exact"
) -> IndexingMap:
    """The map to the whole triangle of the matrix with the indices of the batch.

    >>> print(triangle_reads(Shape("s32", ()), Shape("f32", (3, 3)), lower=True))
    ()[s0, s1] -> (s0, s1), domain: s0 in [0, 2], s1 in [0, 2], s0 - s1 in [0, 2]
    """
    d, (s, t) = dims(out), ranges(*operand.dims[-2:])
    inside = precedes(t, s) if lower else precedes(s, t)
    place = [*d[: operand.rank - 2], s, t]
    return IndexingMap.of(d, place, ranges=(s, t), constraints=[inside], grade=grade)


def column_reads(
    out: Shape, rows: int, columns: int, *, of_factors: bool, last: Grade | None = "may"
) -> Iterator[IndexingMap]:
    """Yield the maps from the factored matrices, or the factors of reflectors, to the matrices.

    Args:
        last: grade of the reads by the reflector of the last row, which has one element; None if
            the factor of this reflector is always 0.
    """
    d, (s, t) = dims(out), ranges(rows, columns)
    bottom = rows - 1
    if of_factors:
        batch, i, j = d[:-1], d[-1], d[-1]
    else:
        batch, (i, j) = d[:-2], d[-2:]
        own = [precedes(i, j, 1)]
        if columns > 1:
            yield IndexingMap.of(d, [*batch, s, j], ranges=(s,), constraints=own)

    def earlier_columns(*within: Constraint, grade: Grade = "exact", to: int = 0) -> IndexingMap:
        """The map to the columns up to i and j, but for the last `to` before i."""
        constraints = [precedes(t, i, to), precedes(t, j), *within]
        return IndexingMap.of(
            d, [*batch, s, t], ranges=(s, t), constraints=constraints, grade=grade
        )

    is_tall = columns < rows if of_factors else columns <= rows
    if is_tall or last == "exact":
        yield earlier_columns()
        return
    if bottom:
        yield earlier_columns(Constraint(i + 0, 0, bottom - 1))
    in_last = Constraint(i + 0, bottom, bottom)
    if not of_factors:
        yield earlier_columns(in_last, Constraint(j + 0, 0, bottom))
        in_last = Constraint(j - i, 1, j.upper)
    if last is not None:
        yield earlier_columns(in_last, Constraint(i + 0, bottom, bottom), grade=last)
    elif bottom and not of_factors:
        yield earlier_columns(in_last, Constraint(i + 0, bottom, bottom), to=1)


def pivoted_reads(out: Shape, rows: int, columns: int, *, of_pivots: bool) -> Iterator[IndexingMap]:
    """Yield the maps from the factors of a matrix with its rows exchanged, or from the pivots.

    Row i is in place after step i, and each step chooses its pivot among all rows below.  The last
    row has no choice.  Element (i, j) therefore depends on column j, and on the columns up to i,
    but for that of the last row.

    >>> for m in pivoted_reads(Shape("s32", (2,)), 2, 3, of_pivots=True):
    ...     print(m)
    (d0)[s0, s1] -> (s0, s1), domain: d0 in [0, 1], s0 in [0, 1], s1 in [0, 2], s1 in [0, 0], \
d0 in [0, 0], d0 - s1 in [0, 1]
    """
    d, (s, t) = dims(out), ranges(rows, columns)
    searched = Constraint(t + 0, 0, min(rows - 2, columns - 1))  # the columns of steps that choose
    if of_pivots:
        batch, i = d[:-1], d[-1]
        if rows > 1:
            in_steps = Constraint(i + 0, 0, min(rows - 2, columns - 1))
            steps = [searched, in_steps, precedes(t, i)]
            yield IndexingMap.of(d, [*batch, s, t], ranges=(s, t), constraints=steps)
        return
    batch, (i, j) = d[:-2], d[-2:]
    if rows == 1:
        yield IndexingMap.of(d, d)
        return
    other_columns = [searched, precedes(t, i)]
    yield IndexingMap.of(d, [*batch, s, t], ranges=(s, t), constraints=other_columns)
    last_step = min(rows - 2, columns - 1)
    if columns > 1:
        for_later = [precedes(i, j, 1)]
        yield IndexingMap.of(d, [*batch, s, j], ranges=(s,), constraints=for_later)
    if last_step < min(rows, columns) - 1:  # element (rows - 1, rows - 1) reads its column
        corner = [Constraint(i + 0, rows - 1, rows - 1), Constraint(j + 0, rows - 1, rows - 1)]
        yield IndexingMap.of(d, [*batch, s, j], ranges=(s,), constraints=corner)


def product_reads(out: Shape, matrix: Shape, count: int) -> tuple[Maps, Maps]:
    """Return the maps from the product of `count` reflectors to the matrices and the factors."""
    if not count:
        return (), ()
    d, (s, t) = dims(out), ranges(matrix.dims[-2], count)
    batch, (i, j) = d[:-2], d[-2:]
    of_matrix = [
        IndexingMap.of(
            d,
            [*batch, s, t],
            ranges=(s, t),
            constraints=[Constraint(j + 0, 1, j.upper), precedes(t, s, 1), precedes(t, j)],
        )
    ] * (matrix.dims[-1] > 1)
    own = [Constraint(j + 0, 0, 0), Constraint(i + 0, 1, i.upper)]
    of_matrix += [IndexingMap.of(d, [*batch, i, 0], constraints=own)] * (matrix.dims[-2] > 1)
    (t,) = ranges(count)
    of_factors = IndexingMap.of(d, [*batch, t], ranges=(t,), constraints=[precedes(t, j)])
    return tuple(of_matrix), (of_factors,)
