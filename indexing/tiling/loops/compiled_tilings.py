"""`CompiledTiling`: the tiling with which XLA:GPU compiled a fusion for its emitter of tiles.

XLA writes it into ``backend_config`` of the fusion, and the steps of a dot into that of the dot.

>>> import hlo
>>> fusion = hlo.parse('''
... f {
...   p = bf16[512,256] parameter(0)
...   q = bf16[256,512] parameter(1)
...   ROOT d = bf16[512,512] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0},
...     backend_config={"sizes":["64"]}
... }
... ENTRY e {
...   p = bf16[512,256] parameter(0)
...   q = bf16[256,512] parameter(1)
...   ROOT d = bf16[512,512] fusion(p, q), kind=kCustom, calls=f,
...     backend_config={"fusion_backend_config":{"kind":"__triton_nested_gemm_fusion",
...       "block_level_fusion_config":{"num_warps":"4","output_tiles":[{"sizes":["64","128"]}],
...         "num_ctas":1,"num_stages":3}}}
... }''').entry.root
>>> compiled = compiled_tiling(fusion)
>>> print(compiled)
[64, 128], d=64, 4 warps, 3 stages
>>> tiling = compiled.tiling()
>>> tiling.blocks, tiling.steps, tiling.bytes, tiling.shared_bytes(compiled.stages)
(32, 4, 3670016, 73728)

Source: XLA ``xla/codegen/xtile/xtile_config.proto``, ``BlockLevelFusionConfig`` and ``Tile``;
``xla/codegen/xtile/codegen/tiling_from_block_parameters.cc``, ``GetTilingSpaceConcreteSizes``: a
dimension that is reduced is one step, one that is contracted has the steps of its dot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hlo.arguments import checked
from hlo.modules.module import Instruction
from hlo.ops.attributes import int_list, integer, word
from hlo.ops.config import find_entry, read_entry
from hlo.text.source import Source, Span
from indexing.maps.displayed import Displayed
from indexing.tiling.loops.loop_model import LoopModel, loop_model
from indexing.tiling.loops.loop_tiling import LoopTiling
from indexing.tiling.loops.looped import tiling_of_model
from indexing.tiling.sets.tiled_answers import Target
from simplifier.unknown import Unknown

_FUSION = "fusion_backend_config"
_CONFIG = f"{_FUSION}.block_level_fusion_config"


@dataclass(frozen=True, slots=True, repr=False)
class CompiledTiling(Displayed):
    """The tiling with which XLA:GPU compiled a fusion.

    Attributes:
        instruction: the fusion.
        kind: XLA's kind of the fusion, such as ``__triton``.
        output_tiles: the sizes of a tile of each output.
        steps: the name of each dot of the fusion, with the steps of its contracted dimensions.
        warps: the number of warps of a block.
        stages: the number of stages of the pipeline of its loop.
        ctas: the number of blocks of a cluster.

    >>> import hlo, indexing
    >>> fusion = hlo.load("examples/targets/attention.h100.hlo").entry["triton_softmax.2"]
    >>> compiled = indexing.compiled_tiling(fusion)
    >>> compiled.output_tiles, compiled.steps, compiled.warps, compiled.stages
    (((2, 256),), (), 2, 1)
    """

    instruction: Instruction
    kind: str
    output_tiles: tuple[tuple[int, ...], ...]
    steps: tuple[tuple[str, tuple[int, ...]], ...]
    warps: int
    stages: int
    ctas: int

    @checked
    def loop_sizes(self, model: LoopModel) -> tuple[int, ...]:
        """Return the step of each loop of a model of this fusion; of reductions, the whole."""
        known = dict(self.steps)
        whole = model.sizes[model.rank :]
        chosen = []
        for loop, size in zip(model.loops, whole, strict=True):
            own = known.get(loop.array.instruction.name, ())
            chosen.append(own[loop.number] if loop.number < len(own) else size)
        return tuple(chosen)

    @checked
    def tiling(self, to: Target = "operands", output_id: int = 0) -> LoopTiling | Unknown:
        """Return the tiles of an output with their loops.

        Elements that a mask hides are loaded, as XLA's emitter does.

        Args:
            to, output_id: as for `indexing.tile`.
        Raises:
            IndexError: `output_id` is out of range.
            ValueError: XLA chose no tile of this output.

        >>> import hlo, indexing
        >>> fusion = hlo.load("examples/targets/attention.h100.hlo").entry["triton_softmax.2"]
        >>> tiling = indexing.compiled_tiling(fusion).tiling()
        >>> tiling.grid, tiling.loaded  # of bf16[256,256], each element once
        ((128, 1), 131072)
        """
        model = loop_model(self.instruction, to, output_id, masks=False)
        if isinstance(model, Unknown):
            return model
        sizes = self.sizes_of(output_id, model.rank)
        return tiling_of_model(model, sizes, self.loop_sizes(model), online=True, split_k=1)

    @checked
    def sizes_of(self, output_id: int, rank: int) -> tuple[int, ...]:
        """Return the sizes of a tile of an output.

        Raises:
            ValueError: XLA chose no tile of this output, or one of another rank.

        >>> import hlo, indexing
        >>> fusion = hlo.load("examples/targets/attention.h100.hlo").entry["triton_softmax.2"]
        >>> indexing.compiled_tiling(fusion).sizes_of(0, rank=2)
        (2, 256)
        """
        if output_id >= len(self.output_tiles):
            raise ValueError(
                f"output_id={output_id}: XLA chose tiles of {len(self.output_tiles)} outputs of "
                f"`{self.instruction.name}`"
            )
        sizes = self.output_tiles[output_id]
        if len(sizes) != rank:
            raise ValueError(
                f"`{self.instruction.name}` was compiled with the tile sizes {list(sizes)}, but "
                f"its output has {rank} dimensions"
            )
        return sizes

    def __str__(self) -> str:
        tiles = ", ".join([str(list(sizes)) for sizes in self.output_tiles])
        steps = [f"{name}={','.join(map(str, own))}" for name, own in self.steps]
        warps = "1 warp" if self.warps == 1 else f"{self.warps} warps"
        stages = "1 stage" if self.stages == 1 else f"{self.stages} stages"
        ctas = [f"{self.ctas} blocks in a cluster"] if self.ctas > 1 else []
        return ", ".join([tiles, *steps, warps, stages, *ctas])

    def __repr__(self) -> str:
        return f"<XLA's tiling of {self.instruction.name!r}: {self}>"


@checked
def compiled_tiling(instruction: Instruction) -> CompiledTiling | Unknown:
    """Return the tiling with which XLA:GPU compiled a fusion.

    Returns:
        The tiling; `Unknown` if the module does not state one: XLA compiled the instruction with
        another emitter, or the module is not optimized for a GPU.
    Raises:
        HloError: the configuration is not that of a tiling.

    >>> import hlo
    >>> entry = hlo.load("examples/targets/attention.h100.hlo").entry
    >>> print(compiled_tiling(entry["triton_softmax.2"]))
    [2, 256], 2 warps, 1 stage
    >>> print(compiled_tiling(entry["loop_reduce_fusion"]).reason)
    the module states no tiling of `loop_reduce_fusion`
    """
    config = _config(instruction)
    if config is None or find_entry(config, _CONFIG) is None:
        return Unknown(f"the module states no tiling of `{instruction.name}`", instruction)
    owner = f"`{_CONFIG}` of `{instruction.name}`"

    def number(name: str, default: int) -> int:
        entry = f"{_CONFIG}.{name}"
        if find_entry(config, entry) is None:
            return default
        return read_entry(config, entry, integer, owner)

    kind = f"{_FUSION}.kind"
    return CompiledTiling(
        instruction,
        read_entry(config, kind, word, owner) if find_entry(config, kind) else "",
        tuple(_tiles(find_entry(config, f"{_CONFIG}.output_tiles"), owner)),
        tuple(_steps(instruction)),
        number("num_warps", 1),
        max(1, number("num_stages", 1)),
        max(1, number("num_ctas", 1)),
    )


def _config(instruction: Instruction) -> Span | None:
    attribute = instruction.attributes.get("backend_config")
    return None if attribute is None else attribute.span


def _tiles(tiles: Span | None, owner: str) -> Iterator[tuple[int, ...]]:
    """Yield the sizes of a list of messages ``{"sizes":[..]}``."""
    text = "" if tiles is None else tiles.text.strip()[1:-1]
    for part in text.split("}"):
        start = part.find("{")
        if start >= 0:
            message = Source(part[start:] + "}", "<backend_config>")
            whole = message.span(0, len(message.text))
            has_sizes = find_entry(whole, "sizes") is not None
            yield read_entry(whole, "sizes", int_list, owner) if has_sizes else ()


def _steps(fusion: Instruction) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the dots of a fusion that have steps."""
    for computation in fusion.called_computations:
        for instruction in computation.instructions:
            config = _config(instruction)
            if config is not None and find_entry(config, "sizes") is not None:
                owner = f"`sizes` of `{instruction.name}`"
                yield instruction.name, read_entry(config, "sizes", int_list, owner)
