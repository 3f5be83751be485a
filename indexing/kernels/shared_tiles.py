"""Elements of tiles in shared memory: what another thread of the block wrote before a barrier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from indexing.equivalence.values.terms.terms import Formula
from indexing.kernels.domains import NotHandled, over, violation
from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import IndexingMap
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.substitute import Substitution

if TYPE_CHECKING:
    from indexing.kernels.accesses import KernelAccess, KernelBuffer
    from indexing.kernels.symbolic import Execution


def tile_element(execution: Execution, buffer: KernelBuffer, index: tuple[Expr, ...]) -> Formula:
    """Return what a read of a tile gives: the value that one thread wrote.

    Raises:
        NotHandled: the tile is written in several ways, or it is not proved which write counts.
    """
    write = _only_write(execution, buffer)
    own = [*execution.threads.values(), *write.variables]
    threads = [v for v in own if v.lower < v.upper]
    blocks = [v for v in execution.blocks.values() if v.lower < v.upper]
    inverse = _inverse(write, threads, blocks)
    dims = list(inverse.dims)
    at = [*index, *[v.as_expr() for v in blocks]]
    swap = Substitution(dict(zip(dims, at, strict=True)))
    place = execution.place
    conditions = [Constraint(swap(v.as_expr()), *v.bounds) for v in dims]
    conditions += [c.with_expr(swap(c.expr)) for c in inverse.constraints]
    conditions = [c for c in conditions if violation(place.guards, c) is not None]
    values = dict(zip((*threads, *blocks), map(swap, inverse.results), strict=True))
    assert write.value is not None
    value = execution.algebra.rewriting(values)(write.value)
    undefined = execution.algebra.undefined(value.type)
    return execution.algebra.where(conditions, value, undefined) if conditions else value


def _only_write(execution: Execution, buffer: KernelBuffer) -> KernelAccess:
    """Return the write of a tile, which a barrier separates from this place."""
    writes = [a for a in execution.accesses if a.buffer is buffer and a.value is not None]
    if len(writes) != 1:
        raise NotHandled(f"a tile that {len(writes)} ops write")
    (write,) = writes
    if not write.is_certain:
        raise NotHandled("a tile that is written under a condition on values")
    if write.interval >= execution.interval:
        raise NotHandled("a tile that is read without a barrier after its writes")
    return write


def _inverse(
    write: KernelAccess, threads: Sequence[Variable], blocks: Sequence[Variable]
) -> IndexingMap:
    """Return the thread and the iteration that write each element of a block's tile, as one map."""
    index = [*write.index, *[v.as_expr() for v in blocks]]
    pieces = over([*threads, *blocks], index, write.guards).inverse()
    if isinstance(pieces, Unknown):
        raise NotHandled(f"the writes of a tile: {pieces.reason}")
    if len(pieces) != 1 or pieces[0].ranges:
        raise NotHandled(f"a tile whose writes are {len(pieces)} maps")
    return pieces[0]
