"""Attention by cuDNN: reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from hlo.modules.module import Instruction
from hlo.ops.attributes import boolean, int_list, integer, word
from hlo.ops.op import configured, custom_call
from hlo.shapes.shape import Shape, leaf_shape
from indexing.maps.answers import Path
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.base import Maps
from indexing.ops.dot import Dot
from indexing.ops.linear_algebra import precedes
from indexing.ops.targets.known_reads import KnownReads
from indexing.ops.targets.known_values import why_no_op

_CONFIG: Final = "cudnn_fmha_backend_config"
_FIRST: Final = f"{_CONFIG}.bmm1_dot_dimension_numbers"
_SECOND: Final = f"{_CONFIG}.bmm2_dot_dimension_numbers"


def _samples(target: str) -> list[str]:
    """Return a call with causal mask on queries of [batch, row, head, feature]."""
    numbers = [
        f'"bmm{k}_dot_dimension_numbers":{{"lhs_contracting_dimensions":["3"],'
        f'"rhs_contracting_dimensions":["{contracted}"],"lhs_batch_dimensions":{left},'
        '"rhs_batch_dimensions":["0","2"]}'
        for k, contracted, left in ((1, 3, '["0","2"]'), (2, 1, '["0","1"]'))
    ]
    return [
        "(f32[1,2,3,5], u8[0]) custom-call(f32[1,3,2,4] p, f32[1,3,2,4] q, f32[1,3,2,5] r), "
        f'custom_call_target="{target}", backend_config={{"{_CONFIG}":{{"mask_type":"CAUSAL",'
        f"{numbers[0]},{numbers[1]}}}}}"
    ]


def _dimensions(numbers: str, name: str) -> tuple[int, ...]:
    """Declare a list of dimensions of one of both dots."""
    return configured(int_list, default=(), name=f"{numbers}.{name}_dimensions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention(KnownReads):
    """``dot(softmax(mask(scale · dot(query, key) + bias)), value)``, and more results.

    An element of the first result reads a row of the query, the rows of the key, and a column of
    the value; with a causal mask, those up to its own row.  Which parts of packed sequences and of
    paged memory are read depends on more operands.

    Source: XLA ``xla/service/gpu/backend_configs.proto``, `CudnnfMHABackendConfig`.
    """

    obstacle: ClassVar[str] = "where the softmax is 0 or 1, it does not depend on every element"
    mask_type: str = configured(word, default="", name=f"{_CONFIG}.mask_type")
    is_paged: bool = configured(boolean, default=False, name=f"{_CONFIG}.is_paged_attention")
    segments: int = configured(integer, default=1, name=f"{_CONFIG}.max_seg_per_batch")
    lhs_batch_1: tuple[int, ...] = _dimensions(_FIRST, "lhs_batch")
    rhs_batch_1: tuple[int, ...] = _dimensions(_FIRST, "rhs_batch")
    lhs_contracting_1: tuple[int, ...] = _dimensions(_FIRST, "lhs_contracting")
    rhs_contracting_1: tuple[int, ...] = _dimensions(_FIRST, "rhs_contracting")
    lhs_batch_2: tuple[int, ...] = _dimensions(_SECOND, "lhs_batch")
    rhs_batch_2: tuple[int, ...] = _dimensions(_SECOND, "rhs_batch")
    lhs_contracting_2: tuple[int, ...] = _dimensions(_SECOND, "lhs_contracting")
    rhs_contracting_2: tuple[int, ...] = _dimensions(_SECOND, "rhs_contracting")

    @property
    def dots(self) -> tuple[Dot, Dot]:
        """The product of query and key, and that of the weights and the value."""
        return (
            Dot(
                lhs_batch_dims=self.lhs_batch_1,
                rhs_batch_dims=self.rhs_batch_1,
                lhs_contracting_dims=self.lhs_contracting_1,
                rhs_contracting_dims=self.rhs_contracting_1,
            ),
            Dot(
                lhs_batch_dims=self.lhs_batch_2,
                rhs_batch_dims=self.rhs_batch_2,
                lhs_contracting_dims=self.lhs_contracting_2,
                rhs_contracting_dims=self.rhs_contracting_2,
            ),
        )

    def maps(self, instruction: Instruction, output: Path, operand: int) -> Maps | None:
        shapes = [each.shape for each in instruction.operands[:3]]
        arrays = [each for each in shapes if isinstance(each, Shape)]
        out = leaf_shape(instruction.shape, output)
        is_first = output in ((), (0,)) and operand < 3 and len(arrays) == 3
        if not is_first or not isinstance(out, Shape) or self.is_paged or self.segments > 1:
            return None
        (first, second), (query, key, value) = self.dots, arrays
        if first.first_fault([query, key]):
            return None
        weights = first.infer_shape(query, key)
        if why_no_op(second, out, weights, value) or not self._is_plain(weights):
            return None
        of_query, of_key = first.factor_maps(weights, query, key)
        of_weights, of_value = [
            self._mask_read(m, weights) for m in second.factor_maps(out, weights, value)
        ]
        read = (of_weights.then(of_query), of_weights.then(of_key), of_value)[operand]
        return (read.simplify().with_grade("may"),)

    def _is_plain(self, weights: Shape) -> bool:
        """True if the weights of a batch are a matrix, whose rows are multiplied by the value."""
        rank = weights.rank
        batch = tuple(range(rank - 2))
        return self.lhs_batch_2 == batch and self.lhs_contracting_2 == (rank - 1,)

    def _mask_read(self, read: IndexingMap, weights: Shape) -> IndexingMap:
        """Return the part of a map, over all columns of the weights, that the mask keeps."""
        if self.mask_type != "CAUSAL" or weights.dims[-1] != weights.dims[-2]:
            return read
        row, column = read.dims[weights.rank - 2], read.ranges[0]
        kept = [precedes(column, row)]
        return IndexingMap.of(read.dims, read.results, ranges=read.ranges, constraints=kept)


_SOFTMAX: Final = "__cudnn$fmhaSoftmax"
_DROPOUT: Final = "__cudnn$fmhaSoftmaxDropout"
_BIAS: Final = "__cudnn$fmhaScaleBiasSoftmax"
_BIAS_DROPOUT: Final = "__cudnn$fmhaScaleBiasSoftmaxDropout"


@custom_call(_SOFTMAX, samples=_samples(_SOFTMAX))
class SoftmaxAttention(Attention):
    """Attention without bias."""


@custom_call(_DROPOUT, samples=_samples(_DROPOUT))
class SoftmaxDropoutAttention(Attention):
    """Attention without bias; some weights are replaced by 0 at random."""


@custom_call(_BIAS, samples=_samples(_BIAS))
class BiasSoftmaxAttention(Attention):
    """Attention with a bias."""


@custom_call(_BIAS_DROPOUT, samples=_samples(_BIAS_DROPOUT))
class BiasSoftmaxDropoutAttention(Attention):
    """Attention with a bias; some weights are replaced by 0 at random."""
