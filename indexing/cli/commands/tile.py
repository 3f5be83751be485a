"""``hlo-indexing tile``: tiles of instructions, and what each tile needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from indexing.cli.integers import IntegerRange
from indexing.cli.options import (
    assume_option,
    exact_option,
    format_option,
    gather_options,
    instruction_option,
    max_input_size_option,
    operand_option,
    output_option,
    target_option,
    values_option,
)
from indexing.cli.paths import InputPath
from indexing.cli.pictures import print_figures
from indexing.cli.reporter import Reporter
from indexing.cli.selected import place_of, selected_instructions
from indexing.cli.tile_cache import CacheOptions, cache_options, cached_answer
from indexing.cli.tile_loops import (
    LoopOptions,
    chosen_loops,
    loop_options,
    looped_answer,
    print_kernel,
)
from indexing.cli.tile_options import WHOLE, SizesText, TileIndexText
from indexing.cli.tile_search import SearchOptions, search_options, searched_answer
from indexing.cli.unused_options import note_unused

if TYPE_CHECKING:
    from indexing.drawing.figures import Figure
    from indexing.tiling.sets.tiling import Target, TileDirection, Tiling
    from indexing.views.loop_tables import LoopAnswer
    from indexing.views.map_query import GivenValues
    from indexing.views.tile_answers import TileAnswer
    from indexing.views.tile_subjects import TileSubject
    from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class TileOptions:
    """The options of the array to tile, and of its tiles."""

    sizes: tuple[int, ...] | None
    index: tuple[int, ...] | None
    direction: TileDirection
    target: Target
    output: int
    operand: int | str | None
    exact: bool
    explain: bool
    blocks: int | None
    values: GivenValues
    assume: tuple[str, ...]

    @property
    def is_forward(self) -> bool:
        """True if operands are tiled."""
        return self.direction == "input-to-output"

    def check(self) -> None:
        """Reject options that contradict each other."""
        if self.index is not None and self.sizes is None:
            raise click.UsageError("--at needs --sizes")
        if self.is_forward and self.target == "parameters":
            raise click.UsageError(
                "--to parameters cannot be used with --direction input-to-output"
            )
        if not self.is_forward and self.operand is not None:
            raise click.UsageError("--operand needs --direction input-to-output")
        if self.is_forward and self.assume:
            raise click.UsageError("--assume cannot be used with --direction input-to-output")
        if self.blocks is not None:
            if self.sizes is None:
                raise click.UsageError("--blocks needs --sizes")
            excluded = {
                "--at": self.index is not None,
                "--explain": self.explain,
                "--direction input-to-output": self.is_forward,
            }
            for option in [option for option, is_given in excluded.items() if is_given]:
                raise click.UsageError(f"--blocks cannot be used with {option}")


@click.command("tile")
@click.argument("file", metavar="FILE", type=InputPath())
@instruction_option
@click.option(
    "--sizes",
    metavar="SIZES",
    type=SizesText(has_whole=True),
    help="Choose the size of a tile in each dimension, such as 32,64; `:` is a whole dimension",
)
@click.option(
    "--at",
    "index",
    metavar="INDEX",
    type=TileIndexText(),
    help="Print the elements of each operand that one tile needs, or of each output that read it; "
    "INDEX counts tiles from 0 in each dimension, such as 1,0",
)
@click.option(
    "--direction",
    default="output-to-input",
    show_default=True,
    type=click.Choice(["output-to-input", "input-to-output"]),
    help="Tile an output, or an operand",
)
@target_option(
    "Choose the arrays that a tile needs: the operands, or the parameters of the computation "
    "(output-to-input only)",
)
@output_option("Tile output N")
@operand_option(
    "Tile this operand, with --direction input-to-output: its number, its name, a glob or "
    "/regex/; by default, operand 0",
)
@exact_option("Use disjoint exact maps instead of one over-approximation where that is possible")
@click.option(
    "--explain",
    is_flag=True,
    help="Give the reasons why tiles are boxes or not, the constraint that the sizes violate, and "
    "sizes nearby that are legal",
)
@click.option(
    "--blocks",
    metavar="SIZE",
    type=IntegerRange(min=1),
    help="Cut each dimension of an operand that a loop runs over into blocks of SIZE; print which "
    "of them each tile reads in full, in part or not, and the first and the last one",
)
@values_option
@assume_option
@loop_options
@search_options
@cache_options
@max_input_size_option
@format_option(click.Choice(["text", "json", "svg"]))
@gather_options("options", lambda: TileOptions)
@click.pass_obj
def command(
    reporter: Reporter,
    file: str,
    names: tuple[str, ...],
    options: TileOptions,
    looped: LoopOptions,
    searched: SearchOptions,
    cache: CacheOptions,
    notation: str,
) -> None:
    """Print what each tile of an instruction of the module in FILE needs of its operands.

    FILE is HLO text, a protobuf or StableHLO; `-` is standard input.
    Without --instruction, the root of the ENTRY computation is tiled.

    A tile is a part of the output with the sizes of --sizes; sizes may exceed the dimensions. For
    each operand, the command prints the elements that a tile needs, as a box with offsets, sizes
    and strides, and how many bytes all tiles read together. With --direction input-to-output, a
    tile is a part of an operand, and the elements are those of the outputs that read it.

    Without --sizes, print the symbolic tile of each map: the box of a tile of any size, and the
    constraints under which it is one. With --search, print the tilings that move the fewest bytes.
    With --blocks, print which blocks of an operand the tiles read: the pairs of a tile and a block
    that a masked attention can skip, and the bounds of its loop over keys. Masks that earlier
    instructions compute count with --to parameters. With --loops, print what a block loads and
    holds in each step of its loops: k is a reduced or contracted dimension, w a window, c a loop
    that runs only within other loops, and d1 is dimension 1 of the result, processed serially;
    several of one kind are numbered, as k0 and k1. With --search --device, steps are searched, too.
    With --as-compiled, sizes and steps are those with which XLA:GPU compiled the fusion. With
    --cache, print how many cache lines miss while the tiles are computed in several orders; an
    order equal to an earlier one has no row. With --wave, the blocks of a wave run in lockstep,
    through the steps of --loops if they are given.

    --limits takes a GPU (H100), the limits by which XLA prunes tilings (xla:H100), or single ones:
    min-elements=N, elements=N, working-set=SIZE, registers=N, shared-memory=SIZE, tiles=N.
    Registers and shared memory are estimates.

    \b
    Kinds:
      box             each tile needs one strided box
      boxes           each tile needs at most 8 boxes
      bounding        a tile may need another set; the box contains it

    \b
    Notation:
      tid_0, ts_0     index of a tile, and its size, in dimension 0
      rt0 = NAME[..]  the element that gives the runtime value rt0; e_0 is an index in the tile
      <=              an upper bound, from a `may` map
      reuse           average number of tiles that need an element
      #               a full block: no mask hides any of it from an element of the tile
      +               a partial block: a mask hides some of it
      .               a skipped block: nothing of it is needed
      ?               a block of which runtime values decide: --set gives them
      stored          the same bytes in memory, those of whole tiles of the layout, such as T(8,128)
      contiguous      runs of adjacent elements of a tile, in the layout of the operand

    \b
    Examples:
      hlo-indexing tile m.hlo -i transpose_copy_fusion.2 --sizes 1,4,16,8
      hlo-indexing tile m.hlo -i transpose_copy_fusion.2 --sizes 1,4,16,8 --at 0,0,0,1
      hlo-indexing tile m.hlo -i ynn_fusion.7 --sizes 16,16 --at 1,0 --format svg -o tile.svg
      hlo-indexing tile m.hlo -i transpose_copy_fusion.2 --sizes 2,4,:,8 --explain
      hlo-indexing tile m.hlo -i ynn_fusion.7 --sizes 16,16 --blocks 16
      hlo-indexing tile m.hlo -i ynn_fusion.3 --sizes 1,4,16,16 --loops k=8
      hlo-indexing tile gpu.hlo -i gemm_fusion_dot.1 --as-compiled --device H100
      hlo-indexing tile m.hlo -i ynn_fusion.3 --sizes 1,4,16,16 --loops k=8 --emit triton
      hlo-indexing tile m.hlo -i transpose_copy_fusion.2
      hlo-indexing tile m.hlo -i ynn_fusion.7 --sizes 16,16 --cache 20KiB --order row,grouped:2
      hlo-indexing tile m.hlo -i ynn_fusion.3 --search --limits working-set=16KiB --limit 3
    """
    options.check()
    others = {
        "--explain": options.explain,
        "--blocks": options.blocks is not None,
        "--set": bool(options.values),
        "--assume": bool(options.assume),
    }
    forward = {"--direction input-to-output": options.is_forward}
    at = {"--at": options.index is not None}
    searched.check({"--sizes": options.sizes is not None, **forward, **others})
    looped.check(
        options.sizes,
        searched.search,
        {
            **at,
            **others,
            **forward,
            "--cache": cache.capacity is not None,
            "--limits": searched.limits is not None,
        },
    )
    cache.check(options.sizes is not None, {**at, **others})
    if notation == "svg" and options.blocks is None and (options.index is None or options.explain):
        raise click.UsageError(
            "--format svg draws one tile, or blocks: it needs --at without --explain, or --blocks"
        )
    figures: list[Figure] = []
    used: dict[str, bool] = {}
    for subject in _subjects(reporter, file, names, options):
        with reporter.reporting(place_of(subject.instruction)):
            for option, is_used in _used_options(subject, options):
                used[option] = used.get(option, False) or is_used
            if notation == "svg":
                figures += _figures(reporter, subject, options)
            elif answer := _answer(reporter, subject, options, looped, searched, cache):
                if reporter.width is not None and notation == "text":
                    reporter.print("")
                if options.blocks is not None:
                    used["--blocks"] = used.get("--blocks", False) or answer.has_masked_blocks
                lines = answer.lines(reporter.width, reporter.paint)
                in_words = "json" if looped.emit == "json" else notation
                reporter.print_answer(in_words, lines, answer.records())
    print_figures(reporter, figures)
    note_unused(reporter, used, options.target)


def _used_options(subject: TileSubject, options: TileOptions) -> Iterator[tuple[str, bool]]:
    """Yield the given options about values, and whether each decides something."""
    if options.values:
        yield "--set", subject.uses_values
    if options.assume:
        yield "--assume", subject.uses_assumptions


def _subjects(
    reporter: Reporter, file: str, names: tuple[str, ...], options: TileOptions
) -> Iterator[TileSubject]:
    """Yield the arrays to tile; report names without an instruction, operand or output."""
    from indexing.views.map_query import Query
    from indexing.views.tile_subjects import TileSubject

    query = Query(operand=options.operand, output_id=options.output, values=options.values)
    for instruction in selected_instructions(reporter, file, names, query):
        if options.is_forward and not instruction.operands:
            reporter.error(f"error[name]: {place_of(instruction)} has no operands")
            continue
        every = enumerate(instruction.operands)
        numbers = [k for k, operand in every if query.reads(k, operand)]
        if query.operand is None or not options.is_forward:
            numbers = [0]
        for number in numbers:
            yield TileSubject(
                instruction,
                options.target,
                options.direction,
                options.output,
                number,
                options.exact,
                options.values,
                options.assume,
            )


def _answer(
    reporter: Reporter,
    subject: TileSubject,
    options: TileOptions,
    looped: LoopOptions,
    searched: SearchOptions,
    cache: CacheOptions,
) -> TileAnswer | LoopAnswer | None:
    """Return the answer that the options ask for; report sizes, orders and indices that are none.

    Without sizes, it is the symbolic tile of each array.
    """
    from indexing.views import tile_answers
    from simplifier.unknown import Unknown

    if looped.as_compiled or looped.device is not None:
        return chosen_loops(reporter, subject, looped, searched)
    if searched.search:
        return searched_answer(subject, searched)
    if options.sizes is None:
        return tile_answers.symbolic_answer(subject)
    tiling = _tiling(reporter, subject, options.sizes)
    if tiling is None:
        return None
    if isinstance(tiling, Unknown):
        return tile_answers.unknown_answer(subject, tiling)
    if looped.emit in ("pallas", "triton"):
        print_kernel(reporter, subject, tiling.sizes, looped)
        return None
    if looped.is_looped:
        return looped_answer(reporter, subject, tiling.sizes, looped, cache)
    if cache.capacity is not None:
        return cached_answer(reporter, subject, tiling, cache.capacity, cache)
    if options.blocks is not None:
        return tile_answers.blocks_answer(subject, tiling, options.blocks)
    if options.index is None:
        return tile_answers.tiling_answer(subject, tiling, options.explain)
    if not _is_in_grid(reporter, subject, tiling, options.index):
        return None
    return tile_answers.region_answer(subject, tiling, options.index)


def _figures(reporter: Reporter, subject: TileSubject, options: TileOptions) -> list[Figure]:
    """Return the pictures of a tile, or of blocks; report unknown ones, and a wrong index."""
    from indexing.drawing.tiling_pictures import tile_figure
    from indexing.views.tile_blocks import blocks_figures
    from simplifier.unknown import Unknown

    index = options.index or ()
    tiling = _tiling(reporter, subject, options.sizes or ())
    if isinstance(tiling, Unknown):
        reporter.error(f"error[tile]: {place_of(subject.instruction)}: unknown: {tiling.reason}")
    elif tiling is not None and options.blocks is not None:
        return blocks_figures(subject, tiling, options.blocks)
    elif tiling is not None and _is_in_grid(reporter, subject, tiling, index):
        return [tile_figure(tiling, index, {})]
    return []


def _tiling(
    reporter: Reporter, subject: TileSubject, sizes: tuple[int, ...]
) -> Tiling | Unknown | None:
    """Return the tiling; report sizes of another rank, and return None."""
    from hlo.shapes.shape import Shape
    from indexing.views.map_tables import shape_text

    shape = subject.shape
    if not isinstance(shape, Shape):
        return subject.tiling(())  # unknown, with a reason
    if len(sizes) != shape.rank:
        example = ",".join([str(max(1, min(n, 32))) for n in shape.dims])
        count = "1 size" if len(sizes) == 1 else f"{len(sizes)} sizes"
        reporter.error(
            f"error[tile]: {place_of(subject.instruction)}: --sizes has {count}, but "
            f"{shape_text(shape)} has rank {shape.rank}",
            f"  = help: write one size for each dimension, such as --sizes {example or repr('')}",
        )
        return None
    whole = zip(sizes, shape.dims, strict=True)
    return subject.tiling(tuple([max(n, 1) if size == WHOLE else size for size, n in whole]))


def _is_in_grid(
    reporter: Reporter, subject: TileSubject, tiling: Tiling, index: tuple[int, ...]
) -> bool:
    """Report the index of a tile that is outside of the grid, or has another rank."""
    try:
        tiling.slices(*index)
    except (IndexError, ValueError) as error:
        reporter.error(
            f"error[at]: {place_of(subject.instruction)}: "
            f"--at {','.join(map(str, index))}: {error}",
            f"  = help: the grid is {list(tiling.grid)}",
        )
        return False
    return True
