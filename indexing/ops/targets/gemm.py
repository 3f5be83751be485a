"""Products of matrices by cuBLAS."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import ml_dtypes
import numpy as np

from hlo.modules.module import Instruction
from hlo.ops.attributes import boolean, int_list, number, word
from hlo.ops.op import configured, custom_call
from hlo.ops.protocols import InstructionLike
from hlo.shapes.shape import ELEMENT_TYPES, AnyShape, Shape, dtype
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.ops.base import Array, Entries
from indexing.ops.dot import Dot, sum_of_products
from indexing.ops.element import ElementRule, OpaqueRule, Work
from indexing.ops.targets.definition import GELU, NONE, RELU, Activation, DefinedArray, Definition
from indexing.ops.targets.known_values import KnownValues, why_no_op
from simplifier.unknown import Unknown

_CONFIG: Final = "gemm_backend_config"
_DOT: Final = f"{_CONFIG}.dot_dimension_numbers"
_GEMM, _LT, _F8 = "__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8"


class Epilogue(NamedTuple):
    """The steps after the product.

    Attributes:
        activation: the function of each element of the sum.
        has_bias: a vector is added to the rows in memory.
        has_sum: the second result is the sum, before the activation.
    """

    activation: Activation = NONE
    has_bias: bool = False
    has_sum: bool = False


def _greatest(element_type: str) -> float:
    """Return the greatest finite number of a floating-point type."""
    info: Any = ml_dtypes.finfo(dtype(element_type))  # type: ignore[no-untyped-call] # no types
    return float(info.max)


EPILOGUES: Final = {
    "DEFAULT": Epilogue(),
    "BIAS": Epilogue(has_bias=True),
    "RELU": Epilogue(RELU),
    "BIAS_RELU": Epilogue(RELU, has_bias=True),
    "GELU": Epilogue(GELU),
    "BIAS_GELU": Epilogue(GELU, has_bias=True),
    "GELU_AUX": Epilogue(GELU, has_sum=True),
    "BIAS_GELU_AUX": Epilogue(GELU, has_bias=True, has_sum=True),
}
"""Source: XLA ``xla/service/gpu/matmul_utils.cc``, `EpilogueAddsVectorBias` and
`EpilogueHasAuxiliaryOutput`; ``xla/service/gpu/transforms/gemm_rewriter.cc`` for the functions."""


def _sample(
    target: str,
    call: str,
    alpha: float = 1,
    beta: float = 0,
    epilogue: str = "DEFAULT",
    dimensions: str = '"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]',
) -> str:
    """Return a call with a configuration."""
    return (
        f'{call}, custom_call_target="{target}", backend_config={{"operation_queue_id":"0",'
        f'"{_CONFIG}":{{"alpha_real":{alpha},"beta":{beta},"dot_dimension_numbers":{{{dimensions}}},"alpha_imag":0,'
        f'"precision_config":{{"operand_precision":["DEFAULT","DEFAULT"]}},'
        f'"epilogue":"{epilogue}"}}}}'
    )


@custom_call(
    _GEMM,
    samples=[
        _sample(_GEMM, "(f32[2,5], s8[3]) custom-call(f32[2,3] p, f32[3,5] q)"),
        _sample(_GEMM, "f32[2,5] custom-call(f32[2,3] p, f32[3,5] q, f32[2,5] r)", 0.5, 2),
        _sample(
            _GEMM,
            "(f32[2,3,5]{1,2,0}, s8[0]) custom-call(f32[4,3,2]{0,1,2} p, f32[2,5,4] q)",
            3,
            dimensions='"lhs_contracting_dimensions":["0"],"rhs_contracting_dimensions":["2"],'
            '"lhs_batch_dimensions":["2"],"rhs_batch_dimensions":["0"]',
        ),
    ],
)
class Gemm(KnownValues):
    """``alpha · dot(left, right) + beta · matrix``, and the workspace.

    The matrix is an operand if beta is not 0.

    Source: XLA ``xla/service/gpu/backend_configs.proto``, `GemmBackendConfig`; flops as in
    ``xla/service/gpu/model/gpu_hlo_cost_analysis.cc``, which counts those of the dot only.
    """

    counts_reads: ClassVar[bool] = True
    alpha_real: float = configured(number, name=f"{_CONFIG}.alpha_real")
    alpha_imag: float = configured(number, default=0.0, name=f"{_CONFIG}.alpha_imag")
    beta: float = configured(number, name=f"{_CONFIG}.beta")
    epilogue: str = configured(word, default="DEFAULT", name=f"{_CONFIG}.epilogue")
    damax_output: bool = configured(boolean, default=False, name=f"{_CONFIG}.damax_output")
    lhs_contracting: tuple[int, ...] = configured(
        int_list, default=(), name=f"{_DOT}.lhs_contracting_dimensions"
    )
    rhs_contracting: tuple[int, ...] = configured(
        int_list, default=(), name=f"{_DOT}.rhs_contracting_dimensions"
    )
    lhs_batch: tuple[int, ...] = configured(
        int_list, default=(), name=f"{_DOT}.lhs_batch_dimensions"
    )
    rhs_batch: tuple[int, ...] = configured(
        int_list, default=(), name=f"{_DOT}.rhs_batch_dimensions"
    )

    @property
    def after(self) -> Epilogue:
        """The steps after the product."""
        return EPILOGUES.get(self.epilogue, EPILOGUES["DEFAULT"])

    @property
    def value_count(self) -> int:
        return 2 if self.after.has_sum else 1

    @property
    def scales(self) -> tuple[str, ...]:
        """The scales among the operands, by name."""
        return ()

    @property
    def places(self) -> dict[str, int]:
        """The numbers of the operands by name."""
        names = ["left", "right"]
        names += ["matrix"] * (self.beta != 0)
        names += [name for name in self.scales if name != "result_scale"]
        names += ["bias"] * self.after.has_bias
        names += [name for name in self.scales if name == "result_scale"]
        return {name: number for number, name in enumerate(names)}

    @property
    def wide(self) -> Shape:
        """The shape of the product, in the type in which it is accumulated."""
        kind = self.value.element_type
        is_short = ELEMENT_TYPES[kind].kind == "floating" and kind != "f64"
        return self.value.with_layout(None).with_element_type("f32" if is_short else kind)

    @property
    def dot(self) -> Dot:
        """The product, before it is rounded to the type of the value."""
        return Dot(
            shape=self.wide,
            lhs_contracting_dims=self.lhs_contracting,
            rhs_contracting_dims=self.rhs_contracting,
            lhs_batch_dims=self.lhs_batch,
            rhs_batch_dims=self.rhs_batch,
        )

    def why_not(self, *operands: Shape) -> str:
        if self.epilogue not in EPILOGUES:
            return f"the epilogue is {self.epilogue}"
        if not self.alpha_real or self.alpha_imag or self.damax_output:
            return "alpha is 0 or has an imaginary part, or the greatest element is a result"
        if len(operands) != len(self.places):
            return f"it has {len(operands)} operands, expected {', '.join(self.places)}"
        if dtype(self.value.element_type).kind in "biu" and not self._is_plain_sum:
            return "integers are scaled, or have an epilogue"
        return why_no_op(self.dot, self.value, *operands[:2]) or self._why_not_added(operands)

    def _why_not_added(self, operands: Sequence[Shape]) -> str:
        """Return why operands after the factors do not fit the value; "" if they fit."""
        places, value = self.places, self.value
        matrix, bias = places.get("matrix"), places.get("bias")
        if matrix is not None and operands[matrix].dims != value.dims:
            return f"the matrix is {operands[matrix]}, the value {value}"
        if bias is not None and not self._bias_fits(operands[bias], operands[1]):
            return f"the bias is {operands[bias]}, the value {value}"
        if any(operands[places[name]].rank for name in self.scales):
            return "a scale is not a scalar"
        if self.after.has_sum and self.results[1] != value:
            return f"the second result is {self.results[1]}, the first {value}"
        return ""

    @property
    def _is_plain_sum(self) -> bool:
        return self.alpha_real == 1 and self.beta in (0, 1) and self.epilogue == "DEFAULT"

    def _bias_places(self, bias: Shape) -> dict[int, int]:
        """The dimension of the value for each dimension of the bias: the most minor in memory."""
        orders = [each.layout_or_default.minor_to_major for each in (bias, self.value)]
        return dict(zip(*orders, strict=False))

    def _bias_fits(self, bias: Shape, right: Shape) -> bool:
        """True if the bias has as many dimensions as the right operand has free ones."""
        free = right.rank - len(self.rhs_batch) - len(self.rhs_contracting)
        places = self._bias_places(bias).items()
        sizes_agree = all(bias.dims[k] == self.value.dims[place] for k, place in places)
        return bias.rank == free == len(places) and sizes_agree

    def value_attributes(self, instruction: InstructionLike) -> dict[str, Hashable]:
        values = KnownValues.value_attributes(self, instruction)
        if self.after.has_bias:
            bias = instruction.operands[self.places["bias"]].shape
            assert isinstance(bias, Shape)
            layouts = self.value.layout_or_default, bias.layout_or_default
            values["layouts"] = tuple([each.minor_to_major for each in layouts])
        return values

    def value_maps(self, out: Shape, *operands: Shape, exact: bool, output_id: int) -> Entries:
        left, right = self.dot.factor_maps(out, *operands[:2])
        maps = {"left": left, "right": right, "matrix": IndexingMap.identity(out.dims)}
        d = dims(out)
        maps |= {name: IndexingMap.of(d, []) for name in self.scales}
        if self.after.has_bias:
            places = self._bias_places(operands[self.places["bias"]])
            maps["bias"] = IndexingMap.of(d, [d[places[k]] for k in range(len(places))])
        return tuple([maps[name] for name in self.places])

    def element(self, out: Shape, *operands: Shape) -> ElementRule:
        is_dot = self._is_plain_sum and not self.beta and not self.scales
        if is_dot and self.results.count(out) == 1 and out == self.value:
            return sum_of_products(out, *operands)
        return OpaqueRule("an element is not a plain sum of products")

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        return self.dot.work(self.value, operands, applied)

    def values(self, arrays: Sequence[Array], operands: Sequence[Shape]) -> tuple[Array, ...]:
        given: dict[str, Any] = {name: arrays[k] for name, k in self.places.items()}
        with np.errstate(all="ignore"):
            total = self.dot.kernel(given["left"], given["right"])
            kind = total.dtype.type
            total = total * kind(self.alpha_real)
            for name in set(self.scales) - {"result_scale"}:
                total = total * given[name].astype(kind)
            if "matrix" in given:
                total = total + kind(self.beta) * given["matrix"].astype(kind)
            if "bias" in given:
                places = self._bias_places(operands[self.places["bias"]])
                sizes = [n if k in places.values() else 1 for k, n in enumerate(self.value.dims)]
                bias = given["bias"].transpose(sorted(places, key=places.__getitem__))
                total = total + bias.reshape(sizes).astype(kind)
            last = np.asarray(self.after.activation.kernel(total, 0))
            if "result_scale" in given:
                limit = kind(_greatest(self.value.element_type))
                last = np.clip(last * given["result_scale"].astype(kind), -limit, limit)
            results = (last, total)[: self.value_count]
            return tuple([each.astype(dtype(self.value.element_type)) for each in results])

    def definition(self, instruction: Instruction) -> Definition:
        definition = Definition([each.shape for each in instruction.operands])
        total = self._defined_sum(definition, instruction)
        activation = self.after.activation
        last = activation.define(definition, total, 0)
        if "result_scale" in self.places:
            limit = _greatest(self.value.element_type)
            low, high = [definition.number(number, last) for number in (-limit, limit)]
            scaled = self._scale_by(definition, last, "result_scale")
            last = definition.apply("clamp", low, scaled, high)
        values = (last, total)[: self.value_count]
        definition.values = [definition.convert(x, self.value.element_type) for x in values]
        has_scales = self.alpha_real != 1 or self.beta not in (0, 1) or bool(self.scales)
        definition.is_exact = activation.is_exact and not has_scales
        return definition

    def _defined_sum(self, definition: Definition, instruction: Instruction) -> DefinedArray:
        """The sum before the activation."""
        given = {name: definition.parameters[k] for name, k in self.places.items()}
        total = definition.line(
            self.wide,
            f"dot({given['left'].name}, {given['right'].name}){self._dot_dimensions}",
        )
        kind = total.shape.element_type
        total = definition.scale(total, self.alpha_real)
        for name in self.scales:
            if name != "result_scale":
                total = self._scale_by(definition, total, name)
        if "matrix" in given:
            matrix = definition.scale(definition.convert(given["matrix"], kind), self.beta)
            total = definition.apply("add", total, matrix)
        if "bias" in given:
            bias = definition.convert(given["bias"], kind)
            given_bias = instruction.operands[self.places["bias"]].shape
            assert isinstance(given_bias, Shape)
            places = self._bias_places(given_bias)
            order = sorted(places, key=places.__getitem__)
            bias = definition.transpose(definition.convert(given["bias"], kind), order)
            bias = definition.broadcast(bias, total.shape.dims, sorted(places.values()))
            total = definition.apply("add", total, bias)
        return total

    def _scale_by(self, definition: Definition, x: DefinedArray, name: str) -> DefinedArray:
        """An array multiplied by a scale among the operands."""
        scale = definition.convert(definition.parameters[self.places[name]], x.shape.element_type)
        return definition.apply("multiply", x, definition.broadcast(scale, x.shape.dims))

    @property
    def _dot_dimensions(self) -> str:
        """The dimensions of the product, as attributes of a dot."""
        numbers = {
            "lhs_batch_dims": self.lhs_batch,
            "lhs_contracting_dims": self.lhs_contracting,
            "rhs_batch_dims": self.rhs_batch,
            "rhs_contracting_dims": self.rhs_contracting,
        }
        each = [f", {name}={{{','.join(map(str, k))}}}" for name, k in numbers.items() if k]
        return "".join(each)


@custom_call(
    _LT,
    samples=[
        _sample(_LT, "(f32[2,5], s8[3]) custom-call(f32[2,3] p, f32[3,5] q)"),
        _sample(
            _LT,
            "f32[2,5]{0,1} custom-call(f32[2,3] p, f32[3,5] q, f32[2,5] r, f32[2] s)",
            2,
            3,
            "BIAS",
        ),
        _sample(
            _LT,
            "(bf16[2,5], s8[0]) custom-call(bf16[2,3] p, bf16[3,5] q, bf16[5] r)",
            1,
            0,
            "BIAS_RELU",
        ),
        _sample(
            _LT, "(f32[2,5], f32[2,5], s8[3]) custom-call(f32[2,3] p, f32[3,5] q)", 1, 0, "GELU_AUX"
        ),
    ],
)
class LtMatmul(Gemm):
    """``activation(alpha · dot(left, right) + beta · matrix + bias)``, the sum if it is a result.

    The bias has the most minor dimensions of the value in memory.

    Source: XLA ``xla/service/gpu/transforms/gemm_rewriter.cc``, ``FuseVectorBiasAdd``.
    """


@custom_call(
    _F8,
    samples=[
        _sample(
            _F8,
            "(bf16[2,5], s8[0]) custom-call(f8e4m3fn[2,3] p, f8e4m3fn[3,5] q, f32[] r, f32[] s)",
        ),
        _sample(
            _F8,
            "(f8e4m3fn[2,5], s8[0]) custom-call(f8e4m3fn[2,3] p, f8e5m2[3,5] q, f32[] r, f32[] s, "
            "bf16[5] t, f32[] u)",
            1,
            0,
            "BIAS",
        ),
    ],
)
class LtMatmulF8(Gemm):
    """`LtMatmul` with a scale for each factor; a scaled value of 8 bits saturates.

    Source: XLA ``xla/service/gpu/thunk_emitter.cc``, ``EmitCublasLtMatmulThunkF8``.
    """

    @property
    def scales(self) -> tuple[str, ...]:
        is_short = ELEMENT_TYPES[self.value.element_type].bits == 8
        return "left_scale", "right_scale", *["result_scale"] * is_short
