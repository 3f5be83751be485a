"""Convolutions by cuDNN, with their gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Final

import numpy as np

from hlo.modules.module import Instruction
from hlo.ops.attributes import WindowDimension, integer, number, window, word
from hlo.ops.dim_labels import DimLabels, dim_labels
from hlo.ops.op import attribute, configured, custom_call
from hlo.shapes.shape import ELEMENT_TYPES, AnyShape, Shape, dtype
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.ops.base import Array, Entries
from indexing.ops.convolution import Convolution, Side
from indexing.ops.dot import sum_of_products
from indexing.ops.element import ElementRule, OpaqueRule, Work
from indexing.ops.targets.definition import CUDNN_ACTIVATIONS, DefinedArray, Definition
from indexing.ops.targets.known_values import KnownValues, why_no_op
from simplifier.unknown import Unknown

_CONFIG: Final = "cudnn_conv_backend_config"


@dataclass(frozen=True, slots=True, kw_only=True)
class CudnnConvolution(KnownValues):
    """A call with the window and the labels of ``out = convolution(left, kernel)``.

    Source: XLA ``xla/service/gpu/cublas_cudnn.h``; flops as in
    ``xla/service/gpu/model/gpu_hlo_cost_analysis.cc``: those of the convolution.
    """

    counts_reads: ClassVar[bool] = True
    obstacle: ClassVar[str] = Convolution.obstacle
    window: tuple[WindowDimension, ...] = attribute(window, default=())
    dim_labels: DimLabels | None = attribute(dim_labels, default=None)  # noqa: RUF009
    feature_group_count: int = attribute(integer, default=1)
    batch_group_count: int = attribute(integer, default=1)
    scale: float = configured(number, default=1.0, name=f"{_CONFIG}.conv_result_scale")
    activation: str = configured(word, default="kNone", name=f"{_CONFIG}.activation_mode")

    @property
    def wide_name(self) -> str:
        """The type in which products are added."""
        return "f64" if self.value.element_type == "f64" else "f32"

    @property
    def wide(self) -> np.dtype[Any]:
        """The same as a type of NumPy."""
        return dtype(self.wide_name)

    @property
    def convolution(self) -> Convolution:
        """The convolution, in the wide type."""
        assert self.dim_labels is not None  # `why_not`
        return Convolution(
            shape=self.value.with_element_type(self.wide_name),
            window=self.window,
            dim_labels=self.dim_labels,
            feature_group_count=self.feature_group_count,
            batch_group_count=self.batch_group_count,
        )

    def arrays(self, *operands: Shape) -> tuple[Shape, Shape, Shape]:
        """The left operand, the kernel and the result of the convolution."""
        left, kernel, *_ = operands
        return left, kernel, self.value

    def count_of_operands(self) -> int:
        """The number of operands."""
        return 2

    def why_not(self, *operands: Shape) -> str:
        if self.dim_labels is None:
            return "it has no dim_labels"
        if len(operands) != self.count_of_operands():
            return f"it has {len(operands)} operands, expected {self.count_of_operands()}"
        kinds = [ELEMENT_TYPES[each.element_type].kind for each in (self.value, *operands)]
        if set(kinds) != {"floating"}:
            return "an array has no floating-point numbers"
        if not self.scale or self.activation not in CUDNN_ACTIVATIONS:
            return f"the scale is {self.scale}, the activation {self.activation}"
        left, kernel, out = self.arrays(*operands)
        return why_no_op(self.convolution, out, left, kernel)

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        given = [each for each in operands if isinstance(each, Shape)]
        left, kernel, result = self.arrays(*given)
        return self.convolution.work(result, (left, kernel), applied)

    def element(self, out: Shape, *operands: Shape) -> ElementRule:
        is_plain = self.scale == 1 and self.activation == "kNone" and len(operands) == 2
        if is_plain and self.results.count(out) == 1 and out == self.value:
            return sum_of_products(out, *operands)
        return OpaqueRule("an element is not a plain sum of products")

    def defined_convolution(self, definition: Definition, instruction: Instruction) -> DefinedArray:
        """The scaled convolution by ops of HLO."""
        left, kernel, *_ = definition.parameters
        names = ("window", "dim_labels", "feature_group_count", "batch_group_count")
        given = [name for name in names if name in instruction.attributes]
        attributes = "".join([f", {n}={instruction.attributes[n].printed}" for n in given])
        total = definition.line(
            self.value.with_layout(None).with_element_type(self.wide_name),
            f"convolution({left.name}, {kernel.name}){attributes}",
        )
        return definition.scale(total, self.scale)

    def define_value(self, definition: Definition, value: DefinedArray) -> None:
        """Define the value, in its type."""
        definition.values = [definition.convert(value, self.value.element_type)]
        definition.is_exact = self.scale == 1

    def in_type(self, value: Array) -> tuple[Array, ...]:
        """The scaled value in its type."""
        scaled = value * value.dtype.type(self.scale) if self.scale != 1 else value
        return (scaled.astype(dtype(self.value.element_type)),)


def _sample(target: str, call: str, scale: float = 1, more: str = "") -> str:
    """Return a call with a configuration."""
    return (
        f'{call}, custom_call_target="{target}", backend_config={{"operation_queue_id":"0",'
        f'"{_CONFIG}":{{"conv_result_scale":{scale},"leakyrelu_alpha":0.5{more}}}}}'
    )


_FORWARD: Final = "__cudnn$convForward"
_FUSED: Final = "__cudnn$convBiasActivationForward"
_INPUT: Final = "__cudnn$convBackwardInput"
_FILTER: Final = "__cudnn$convBackwardFilter"
_WINDOW: Final = "window={size=2x3 stride=2x1 pad=-1_0x1_0}, dim_labels=b01f_i01o->b01f"
_GROUPED: Final = (
    "window={size=2 pad=1_0 rhs_dilate=2 rhs_reversal=1}, dim_labels=b0f_0io->bf0, "
    "feature_group_count=2"
)


@custom_call(
    _FORWARD,
    samples=[
        f"(f32[1,2,2,2], u8[0]) custom-call(f32[1,5,3,2] p, f32[2,2,3,2] q), {_WINDOW}, "
        f'custom_call_target="{_FORWARD}"',
        _sample(
            _FORWARD, f"(f32[1,4,2], u8[3]) custom-call(f32[1,3,4] p, f32[2,2,4] q), {_GROUPED}", 2
        ),
    ],
)
class CudnnConvForward(CudnnConvolution):
    """A convolution, scaled, and the workspace."""

    map_options: ClassVar[tuple[str, ...]] = ("exact", "of_rule", "output_id")

    def why_not(self, *operands: Shape) -> str:
        reason = CudnnConvolution.why_not(self, *operands)
        return reason or ("" if self.activation == "kNone" else f"it has {self.activation}")

    def value_maps(self, out: Shape, *operands: Shape, exact: bool, output_id: int) -> Entries:
        left, kernel = operands
        return self.convolution.output_to_input(out, left, kernel, exact)

    def output_to_input(
        self, out: Shape, *operands: Shape, output_id: int = 0, **options: bool
    ) -> Entries:
        left, kernel = operands
        convolution = self.convolution
        return ((), ()) if output_id else convolution.output_to_input(out, left, kernel, **options)

    def input_to_output(
        self, out: Shape, *operands: Shape, output_id: int = 0, **options: bool
    ) -> Entries:
        left, kernel = operands
        convolution = self.convolution
        return ((), ()) if output_id else convolution.input_to_output(out, left, kernel, **options)

    def values(self, arrays: Sequence[Array], operands: Sequence[Shape]) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return self.in_type(self.convolution.kernel(*arrays))

    def definition(self, instruction: Instruction) -> Definition:
        definition = Definition([each.shape for each in instruction.operands])
        self.define_value(definition, self.defined_convolution(definition, instruction))
        return definition


@custom_call(
    _FUSED,
    samples=[
        _sample(
            _FUSED,
            "(f32[1,2,2,2], u8[3]) custom-call(f32[1,5,3,2] p, f32[2,2,3,2] q, f32[2] r), "
            f"{_WINDOW}",
            2,
            ',"activation_mode":"kLeakyRelu"',
        ),
        _sample(
            _FUSED,
            "f32[1,4,2] custom-call(f32[1,3,4] p, f32[2,2,4] q, f32[4] r, f32[1,4,2] s), "
            f"{_GROUPED}",
            1,
            ',"activation_mode":"kNone","side_input_scale":3',
        ),
    ],
)
class CudnnConvBiasActivation(CudnnConvolution):
    """``activation(scale · convolution + side_input_scale · side + bias)``, and the workspace.

    The bias has one number for each output feature.  The side input is an operand if its scale is
    not 0.

    Source: XLA ``xla/service/gpu/gpu_conv_runner.h``, `FusionConfig`.
    """

    side_scale: float = configured(number, default=0.0, name=f"{_CONFIG}.side_input_scale")
    slope: float = configured(number, default=0.0, name=f"{_CONFIG}.leakyrelu_alpha")

    def count_of_operands(self) -> int:
        return 4 if self.side_scale else 3

    @property
    def feature(self) -> int:
        """The dimension of the output features."""
        return self.convolution.dim_labels.order("out")[1]

    def why_not(self, *operands: Shape) -> str:
        if reason := CudnnConvolution.why_not(self, *operands):
            return reason
        _, _, bias, *sides = operands
        if bias.dims != (self.value.dims[self.feature],):
            return f"the bias is {bias}, the value {self.value}"
        if any(side.dims != self.value.dims for side in sides):
            return f"the side input is {sides[0]}, the value {self.value}"
        return ""

    def value_maps(self, out: Shape, *operands: Shape, exact: bool, output_id: int) -> Entries:
        left, kernel, _, *sides = operands
        d = dims(out)
        return (
            *self.convolution.output_to_input(out, left, kernel, exact),
            IndexingMap.of(d, [d[self.feature]]),
            *[IndexingMap.identity(out.dims) for _ in sides],
        )

    def values(self, arrays: Sequence[Array], operands: Sequence[Shape]) -> tuple[Array, ...]:
        left, kernel, bias, *sides = arrays
        with np.errstate(all="ignore"):
            total = self.convolution.kernel(left, kernel)
            kind = total.dtype.type
            total = total * kind(self.scale)
            for side in sides:
                total = total + kind(self.side_scale) * side.astype(kind)
            sizes = [-1 if k == self.feature else 1 for k in range(total.ndim)]
            total = total + bias.astype(kind).reshape(sizes)
            last = np.asarray(CUDNN_ACTIVATIONS[self.activation].kernel(total, self.slope))
            return (last.astype(dtype(self.value.element_type)),)

    def definition(self, instruction: Instruction) -> Definition:
        definition = Definition([each.shape for each in instruction.operands])
        total = self.defined_convolution(definition, instruction)
        kind = total.shape.element_type
        _, _, bias, *sides = [definition.convert(x, kind) for x in definition.parameters]
        for side in sides:
            total = definition.apply("add", total, definition.scale(side, self.side_scale))
        bias = definition.broadcast(bias, total.shape.dims, [self.feature])
        total = definition.apply("add", total, bias)
        last = CUDNN_ACTIVATIONS[self.activation].define(definition, total, self.slope)
        self.define_value(definition, last)
        definition.is_exact &= self.side_scale in (0, 1)
        return definition


@dataclass(frozen=True, slots=True, kw_only=True)
class CudnnGradient(CudnnConvolution):
    """A gradient of a convolution, of which the call has the window and the labels.

    Source: XLA ``xla/service/gpu/transforms/conv_rewriter.cc``.
    """

    def why_not(self, *operands: Shape) -> str:
        if self.batch_group_count != 1 or any(w.base_dilation != 1 for w in self.window):
            return "a gradient has batch groups or a dilated input"
        if self.activation != "kNone":
            return f"it has {self.activation}"
        return CudnnConvolution.why_not(self, *operands)

    def grouped(self, side: Side, array: Array) -> Array:
        """View an array by group, and positions last.

        ``[batch, group, input, ..]`` of the left operand, ``[batch, group, output, ..]`` of the
        result, and ``[input, group, output, ..]`` of the kernel.
        """
        groups, order = self.feature_group_count, self.convolution.dim_labels.order(side)
        array = array.astype(self.wide).transpose(order)
        first, second, *spatial = array.shape
        return array.reshape(first, groups, second // groups, *spatial)

    def ungrouped(self, side: Side, array: Array) -> Array:
        """The inverse of `grouped`."""
        first, groups, second, *spatial = array.shape
        array = array.reshape(first, groups * second, *spatial)
        order = self.convolution.dim_labels.order(side)
        return np.moveaxis(array, range(array.ndim), order)

    def steps(
        self, left: Array, out: Array
    ) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]]:
        """Yield the indices of a tap in a grouped kernel, and of the parts that meet with it."""
        for taps in product(*[range(w.size) for w in self.window]):
            index: list[Any] = [Ellipsis]
            met: list[Any] = [Ellipsis]
            at: list[Any] = [Ellipsis]
            for w, s, n, count in zip(
                self.window, taps, left.shape[3:], out.shape[3:], strict=True
            ):
                start = s * w.window_dilation - w.low  # of position 0
                first = max(0, -(start // w.stride))
                last = max(first, min(count, (n - 1 - start) // w.stride + 1))
                place = start + first * w.stride
                met.append(slice(place, place + (last - first) * w.stride, w.stride))
                at.append(slice(first, last))
                index.append(w.size - 1 - s if w.is_reversed else s)
            yield tuple(index), tuple(met), tuple(at)


@custom_call(
    _INPUT,
    samples=[
        _sample(
            _INPUT,
            f"(f32[1,5,3,2], u8[0]) custom-call(f32[1,2,2,2] p, f32[2,2,3,2] q), {_WINDOW}",
        ),
        _sample(
            _INPUT, f"(f32[1,3,4], u8[3]) custom-call(f32[1,4,2] p, f32[2,2,4] q), {_GROUPED}", 2
        ),
    ],
)
class CudnnConvBackwardInput(CudnnGradient):
    """``Σ out[b, x, o] · kernel[s, i, o]``, over the results that the element is read for.

    Operand 0 has the shape of the convolution's result, and the value that of its left operand.
    """

    def arrays(self, *operands: Shape) -> tuple[Shape, Shape, Shape]:
        out, kernel = operands
        return self.value, kernel, out

    def value_maps(self, out: Shape, *operands: Shape, exact: bool, output_id: int) -> Entries:
        left, kernel, result = self.arrays(*operands)
        return self.convolution.met_by_input(result, left, kernel)

    def values(self, arrays: Sequence[Array], operands: Sequence[Shape]) -> tuple[Array, ...]:
        out, kernel = self.grouped("out", arrays[0]), self.grouped("rhs", arrays[1])
        total = self.grouped("lhs", np.zeros(self.value.dims))
        with np.errstate(all="ignore"):
            for taps, met, at in self.steps(total, out):
                total[met] += np.einsum("igo,bgo...->bgi...", kernel[taps], out[at])
        return self.in_type(self.ungrouped("lhs", total))


@custom_call(
    _FILTER,
    samples=[
        _sample(
            _FILTER,
            f"(f32[2,2,3,2], u8[0]) custom-call(f32[1,5,3,2] p, f32[1,2,2,2] q), {_WINDOW}",
        ),
        _sample(
            _FILTER, f"(f32[2,2,4], u8[3]) custom-call(f32[1,3,4] p, f32[1,4,2] q), {_GROUPED}", 2
        ),
    ],
)
class CudnnConvBackwardFilter(CudnnGradient):
    """``Σ left[b, y, i] · out[b, x, o]``, over the positions where the tap meets an element.

    Operand 1 has the shape of the convolution's result, and the value that of its kernel.
    """

    def arrays(self, *operands: Shape) -> tuple[Shape, Shape, Shape]:
        left, out = operands
        return left, self.value, out

    def value_maps(self, out: Shape, *operands: Shape, exact: bool, output_id: int) -> Entries:
        left, kernel, result = self.arrays(*operands)
        return self.convolution.met_by_tap(result, left, kernel)

    def values(self, arrays: Sequence[Array], operands: Sequence[Shape]) -> tuple[Array, ...]:
        left, out = self.grouped("lhs", arrays[0]), self.grouped("out", arrays[1])
        total = self.grouped("rhs", np.zeros(self.value.dims))
        with np.errstate(all="ignore"):
            for taps, met, at in self.steps(left, out):
                pairs = np.einsum("bgi...,bgo...->igo...", left[met], out[at])
                total[taps] = pairs.sum(tuple(range(3, pairs.ndim)))
        return self.in_type(self.ungrouped("rhs", total))
