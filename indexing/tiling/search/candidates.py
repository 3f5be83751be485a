"""Valid tilings of an instruction, and those that move the fewest bytes.

>>> import hlo
>>> module = hlo.parse('''ENTRY e {
...   p = f32[64,32] parameter(0)
...   q = f32[32,64] parameter(1)
...   ROOT dot = f32[64,64] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
... }''')
>>> print(best_tilings(module.entry.root, limits=TilingLimits(max_working_set=12_288), top=2))
best tilings of `dot` f32[64,64] by bytes
sizes    tiles   bytes  requested  reuse  working set
[32,32]      4  49,152     32,768     32       12,288
[16,32]      8  65,536     49,152  21.33        8,192
9 of 49 tilings built
4 tilings refused by limits: [32, 64]: a working set of 20,480 bytes: at most 12,288 allowed
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, overload

import indexing.methods as methods
from hlo.arguments import checked
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves
from indexing.maps.displayed import Displayed
from indexing.tiling.loops.loop_objectives import LoopObjective
from indexing.tiling.search.best_first import best_first
from indexing.tiling.search.candidate_sizes import SizeChoice, TileSizes
from indexing.tiling.search.limits import TilingLimits
from indexing.tiling.search.measures import (
    Objective,
    RankedTiling,
    measure_tiling,
)
from indexing.tiling.search.refusals import AcceptedKind as AcceptedKind
from indexing.tiling.search.refusals import Refusals as Refusals
from indexing.tiling.search.tiling_rules import TilingRules
from indexing.tiling.sets.tiling import Target, Tiling, tile
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from indexing.tiling.loops.loop_search import BestLoopTilings

SizesToTry: TypeAlias = SizeChoice | Sequence[Sequence[int]]
LoopChoices: TypeAlias = Mapping[str, Sequence[int]] | Sequence[Sequence[int]] | None


MAX_TILINGS: Final = 500
"""Maximum number of tilings that `best_tilings` builds by default."""
MAX_SIZES: Final = 100_000
"""Maximum number of tile sizes that `best_tilings` visits; beyond it, sizes are left out."""


@dataclass(frozen=True, slots=True, repr=False)
class BestTilings(Displayed, Sequence[RankedTiling]):
    """The best tilings of one output, the best first.

    Attributes:
        shape: the shape of the output.
        instruction: the instruction whose output is tiled.
        objective: the figure by which they are ranked.
        ranked: the tilings.
        candidates: number of tile sizes to choose from.
        built: number of tilings that were built and measured.
        refused: the tilings that were built and are not valid.
        incomplete: the reason why better tilings may exist; empty if none do.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[64] parameter(0)  ROOT b = f32[16,64] broadcast(p), "
    >>> best = indexing.best_tilings(hlo.parse(text + "dimensions={1} }").entry.root, top=2)
    >>> best[0].sizes, best[0].bytes, best.incomplete
    ((16, 64), 4352, '')
    """

    shape: Shape
    instruction: Instruction
    objective: Objective
    ranked: tuple[RankedTiling, ...]
    candidates: int
    built: int
    refused: tuple[Refusals, ...]
    incomplete: str

    def __len__(self) -> int:
        return len(self.ranked)

    @overload
    def __getitem__(self, index: int) -> RankedTiling: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RankedTiling, ...]: ...
    def __getitem__(self, index: int | slice) -> RankedTiling | tuple[RankedTiling, ...]:
        return self.ranked[index]

    def __str__(self) -> str:
        return methods.best_tilings_text(self)

    def __repr__(self) -> str:
        return f"<the {len(self.ranked)} best tilings of {self.instruction.name!r}>"


@checked
def valid_tilings(
    instruction: Instruction,
    sizes: SizesToTry = "powers",
    limits: TilingLimits | None = None,
    predicate: Callable[[Tiling], bool] | None = None,
    accept: AcceptedKind = "box",
    symbolic: bool = False,
    to: Target = "operands",
    output_id: int = 0,
) -> Iterator[Tiling] | Unknown:
    """Return an iterator over the tilings that keep all rules, in the order of the tile sizes.

    A tiling is valid if each tile needs one strided box of each operand (see `accept`), the limits
    hold, and the predicate is true.  Tilings are built on demand.  Those whose tile of the result
    exceeds a limit, and those that a tiling refines which exceeds one, are skipped unbuilt.

    Args:
        instruction: the instruction whose output is tiled.
        sizes: the tile sizes to try: "powers": powers of two and the whole dimension; "divisors":
            these and all divisors; "xla": the enumeration of XLA; "all"; or a list of sizes for
            each dimension.  The last dimension varies fastest.
        limits: limits on the tiles; by default, none.
        predicate: another condition of the caller.
        accept: "box"; "boxes" to accept operands of which a tile needs a few boxes, too; "bounding"
            to accept any set.
        symbolic: refuse sizes that violate the constraints of `symbolic_tile` for one of the maps,
            as XLA does, although the sets of all tiles may be boxes.
        to: "operands" of the instruction, or "parameters" of its computation.
        output_id: number of the tiled output.
    Returns:
        The iterator; `Unknown` if the maps of the instruction are unknown.
    Raises:
        HloError: the instruction, or one that it depends on, is invalid.
        IndexError: `output_id` is out of range.
        ValueError: `sizes` has not one list of positive sizes for each dimension.

    >>> import hlo
    >>> text = "ENTRY e { p = f32[12] parameter(0)  ROOT r = f32[3,4] reshape(p) }"
    >>> [tiling.sizes for tiling in valid_tilings(hlo.parse(text).entry.root)]
    [(1, 1), (1, 2), (1, 4), (2, 1), (2, 4), (3, 1), (3, 4)]
    """
    whole = one_tile(instruction, to, output_id)
    if isinstance(whole, Unknown):
        return whole
    choices = TileSizes.of(whole.shape.dims, sizes)
    rules = TilingRules(choices, whole, limits or TilingLimits(), accept, predicate, symbolic)
    return rules.valid()


@overload
def best_tilings(
    instruction: Instruction,
    objective: Objective = "bytes",
    top: int = 10,
    sizes: SizesToTry | None = None,
    limits: TilingLimits | None = None,
    predicate: Callable[[Tiling], bool] | None = None,
    accept: AcceptedKind = "box",
    symbolic: bool = False,
    to: Target = "operands",
    output_id: int = 0,
    max_tilings: int = MAX_TILINGS,
    device: str | None = None,
    loops: Literal[False] = False,
) -> BestTilings | Unknown: ...
@overload
def best_tilings(
    instruction: Instruction,
    objective: LoopObjective | Literal["bytes"] = "bytes",
    top: int = 10,
    sizes: Sequence[Sequence[int]] | None = None,
    *,
    accept: AcceptedKind = "box",
    to: Target = "operands",
    output_id: int = 0,
    device: str | None = None,
    loops: Literal[True],
    loop_sizes: LoopChoices = None,
) -> BestLoopTilings | Unknown: ...
@checked
def best_tilings(  # noqa: PLR0913  # the options of both searches
    instruction: Instruction,
    objective: Objective | LoopObjective = "bytes",
    top: int = 10,
    sizes: SizesToTry | None = None,
    limits: TilingLimits | None = None,
    predicate: Callable[[Tiling], bool] | None = None,
    accept: AcceptedKind = "box",
    symbolic: bool = False,
    to: Target = "operands",
    output_id: int = 0,
    max_tilings: int = MAX_TILINGS,
    device: str | None = None,
    loops: bool = False,
    loop_sizes: LoopChoices = None,
) -> BestTilings | BestLoopTilings | Unknown:
    """Return the valid tilings that are best by an objective, the best first.

    The objectives, each a sum over all tiles, partial tiles included:

    * "bytes": the fewest bytes loaded and stored.  A tile loads each element that it needs once,
      and each element of the result is stored once.
    * "requested": the fewest bytes requested.  A tile loads the elements that it needs by each of
      its maps separately, as a kernel with one load for each access does; results are not counted.
    * "reuse": the largest `RankedTiling.reuse`, the number of elements of the result that a loaded
      element serves on average.  It ranks by loaded bytes, because loads of single elements do not
      depend on the tile sizes.

    Ties are broken by the number of tiles, the fewest first.  The search builds tilings from coarse
    to fine, and stops if no other tiling can be better (see `indexing.tiling.search.best_first`).

    Args:
        instruction: the instruction whose output is tiled.
        objective: the figure to rank by.
        top: number of tilings to return.
        sizes, limits, predicate, accept, symbolic, to, output_id: as for `valid_tilings`.
        max_tilings: maximum number of tilings to build; `BestTilings.incomplete` reports if it is
            exceeded.
        device: the GPU, or the TPU such as "v5e", whose rules tilings with loops keep, by default
            H100; without `loops`, the GPU whose limits are kept if there are no others.  A TPU runs
            blocks in sequence: see `LoopTiling.sequential_bytes`.
        loops: also choose the steps of loops, see `tile`, and split loops where blocks are fewer
            than processors.  The objective is "bytes" or a `LoopObjective`: the fewest bytes of a
            processor that has blocks, then the fewest steps.  See `AverageProcessor`.
        loop_sizes: with `loops`, the steps to try by the name of a loop, or for each loop.
    Returns:
        The best tilings; `Unknown` if the maps of the instruction are unknown.
    Raises:
        HloError: the instruction, or one that it depends on, is invalid.
        IndexError: `output_id` is out of range.
        ValueError: `sizes` has not one list of positive sizes for each dimension, `top` or
            `max_tilings` is not positive, or an option belongs to the other search.

    >>> import hlo
    >>> text = "ENTRY e { p = f32[12,8] parameter(0)  ROOT t = f32[8,12] transpose(p), "
    >>> module = hlo.parse(text + "dimensions={1,0} }")
    >>> best = best_tilings(module.entry.root, limits=TilingLimits(max_elements=32), top=2)
    >>> [(ranked.sizes, ranked.bytes) for ranked in best]
    [((8, 4), 768), ((2, 12), 768)]
    """
    for name, value in (("top", top), ("max_tilings", max_tilings)):
        if value < 1:
            raise ValueError(f"{name}={value}: expected at least 1")
    if loops:
        has_others = bool(limits or predicate or symbolic or max_tilings != MAX_TILINGS)
        _check_with_loops(sizes, objective, has_others)
        own = None if isinstance(objective, str) else objective
        lists = None if isinstance(sizes, str) else sizes
        return methods.best_loop_tilings(
            instruction, device or "H100", top, lists, loop_sizes, accept, own, to, output_id
        )
    if not isinstance(objective, str):
        raise ValueError("an objective that is not a name needs loops=True")
    if loop_sizes is not None:
        raise ValueError("loop_sizes needs loops=True")
    limits = limits or (TilingLimits() if device is None else TilingLimits.of_gpu(device))
    return _best_whole_loops(
        instruction,
        objective,
        top,
        "powers" if sizes is None else sizes,
        _RuleOptions(limits, accept, predicate, symbolic),
        to,
        output_id,
        max_tilings,
    )


def _check_with_loops(
    sizes: SizesToTry | None, objective: Objective | LoopObjective, has_others: bool
) -> None:
    """Raise ValueError for options of tilings without loops."""
    if has_others or isinstance(sizes, str):
        raise ValueError(
            "loops=True: the limits are those of `device`, and sizes are lists; limits, predicate, "
            "symbolic and max_tilings are for tilings without loops"
        )
    if isinstance(objective, str) and objective != "bytes":
        raise ValueError(
            f'loops=True: expected objective="bytes" or a LoopObjective, got {objective!r}'
        )


class _RuleOptions(NamedTuple):
    """The options of the rules of valid tilings."""

    limits: TilingLimits
    accept: AcceptedKind
    predicate: Callable[[Tiling], bool] | None
    symbolic: bool


def _best_whole_loops(
    instruction: Instruction,
    objective: Objective,
    top: int,
    sizes: SizesToTry,
    options: _RuleOptions,
    to: Target,
    output_id: int,
    max_tilings: int,
) -> BestTilings | Unknown:
    """Return the best tilings of which each tile has whole loops."""
    whole = one_tile(instruction, to, output_id)
    if isinstance(whole, Unknown):
        return whole
    all_sizes = TileSizes.of(whole.shape.dims, sizes)
    choices = all_sizes.thin(MAX_SIZES)
    rules = TilingRules(choices, whole, *options)
    floor = rules.bound(measure_tiling(whole, rules.single), objective)
    result = best_first(
        choices,
        rules.is_refused,
        lambda own: rules.evaluate(own, objective),
        top,
        max_tilings,
        floor,
    )
    incomplete = []
    is_optimal = len(result.items) == top and result.items[-1][0] == floor
    if choices != all_sizes and not is_optimal:
        incomplete.append(f"{len(choices):,} of {len(all_sizes):,} tile sizes tried")
    if not result.is_complete and not is_optimal:
        incomplete.append(f"budget: max_tilings={max_tilings} tilings built")
    return BestTilings(
        whole.shape,
        instruction,
        objective,
        tuple([ranked for _, ranked in result.items]),
        len(all_sizes),
        result.built,
        tuple(rules.refused.values()),
        "; ".join(incomplete),
    )


def one_tile(instruction: Instruction, to: Target, output_id: int) -> Tiling | Unknown:
    """Return the tiling by one tile."""
    outputs = leaves(instruction.shape)
    shape = outputs[output_id][1] if 0 <= output_id < len(outputs) else None
    dims = shape.dims if isinstance(shape, Shape) else ()
    return tile(instruction, [max(1, n) for n in dims], to, output_id, exact=True, masks=False)
