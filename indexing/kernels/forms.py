"""The custom syntax of ops: for each op a line that shows it.

In a form, ``%role`` is an operand, ``%role*`` a list of operands (maybe empty), ``name=word``,
``name=int``, ``name=ints`` (a list in square brackets), ``name=map``, ``name=symbol`` and
``name=value`` are attributes, ``{}`` is a dictionary of attributes, ``flags`` is an optional
``fastmath<…>``, ``overflow<…>`` or such, ``:types`` are the types after a colon, a step with ``?``
is optional, and other words stand for themselves.  The word after ``=>`` gives types of results:

* ``same``: the last type; ``element``: its element type; ``bool``: `i1`, in the shape of the type;
* ``function``: what follows ``->``; ``to``: what follows ``to``, ``into`` or ``->``;
* ``index``, ``i1``: this type; ``none``: no results; ``vector``: the last of several types.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple


class OpForm(NamedTuple):
    """The syntax of an op.

    Attributes:
        steps: what follows the name, in order.
        result: how the types of the results are found.
    """

    steps: tuple[str, ...]
    result: str


_BINARY = "%lhs , %rhs flags {} :types => same"
_UNARY = "%value flags {} :types => same"
_CAST = "%value flags {} :types => to"
_FORMS = {
    "arith.constant": "{} value=value => constant",
    "complex.constant": "value=value {} :types => same",
    "ub.poison": "{} :types => same",
    "arith.cmpi": "predicate=word , %lhs , %rhs {} :types => bool",
    "arith.cmpf": "predicate=word , %lhs , %rhs flags {} :types => bool",
    "arith.select": "%condition , %true , %false {} :types => same",
    "complex.create": "%real , %imaginary {} :types => same",
    "complex.abs": "%value flags {} :types => element",
    "complex.re": "%value flags {} :types => element",
    "complex.im": "%value flags {} :types => element",
    "complex.angle": "%value flags {} :types => element",
    "math.fma": "%a , %b , %c flags {} :types => same",
    "math.fpowi": "%lhs , %rhs flags {} :types => first",
    "math.ipowi": _BINARY,
    "tensor.extract": "%source [ %indices* ] {} :types => element",
    "tensor.insert": "%value into %target [ %indices* ] {} :types => same",
    "tensor.parallel_insert_slice":
        "%value into %target offsets=%ints sizes=%ints strides=%ints {} :types => none",
    "tensor.empty": "( ) {} :types => same",
    "tensor.from_elements": "%values* {} :types => same",
    "memref.load": "%source [ %indices* ] {} :types => element",
    "memref.store": "%value , %target [ %indices* ] {} :types => none",
    "vector.broadcast": "%value {} :types => to",
    "vector.extract": "%source position=%ints {} :types => first",
    "vector.insert": "%value , %target position=%ints {} :types => same",
    "vector.transfer_read": "%source [ %indices* ] , %padding mask? {} :types => same",
    "vector.transfer_write": "%value , %target [ %indices* ] mask? {} :types => transfer",
    "vector.from_elements": "%values* {} :types => same",
    "gpu.thread_id": "dimension=word upper? {} => index",
    "gpu.block_id": "dimension=word upper? {} => index",
    "gpu.lane_id": "upper? {} => index",
    "gpu.barrier": "{} => none",
    "gpu.shuffle": "mode=word %value , %offset , %width {} :types => shuffle",
    "xla.workgroup_id": "dimension=word {} => index",
    "xla.apply_indexing": "map=map dims? symbols? {} => indexing",
    "xla.pure_call": "callee=symbol ( %arguments* ) {} :types => function",
    "func.call": "callee=symbol ( %arguments* ) {} :types => function",
    "call": "callee=symbol ( %arguments* ) {} :types => function",
    "xla.yield": "%values* {} types? => none",
    "scf.yield": "{} %values* types? => none",
    "return": "{} %values* types? => none",
    "func.return": "{} %values* types? => none",
    "xla.predicated_insert": "%value into %target [ %indices* ] if %condition {} :types => same",
    "xla.predicated_extract":
        "%source [ %indices* ] if %condition else %otherwise {} :types => element",
    "xla_gpu.allocate_shared": "{} :types => same",
    "xla_gpu.sync_threads": "%values* {} :types => all",
    "xla_gpu.shuffle_reduce":
        "( %values* ) to max_distance=int combiner = combiner=symbol {} :types => all",
    "xtile.extract":
        "%source [ %indices* ] sizes=ints strides=ints {} :types => to",
    "xtile.insert":
        "%value into %target [ %indices* ] sizes=ints strides=ints {} :types => to_none",
    "xtile.mask": "%value bounds bounds=ints , %masked {} :types => same",
    "xtile.return": "{} => none",
    "stablehlo.convert": "%value {} :types => function",
    "stablehlo.reshape": "%value {} :types => function",
    "stablehlo.transpose": "%value , dims = dims=ints {} :types => function",
    "stablehlo.broadcast_in_dim": "%value , dims = dims=ints {} :types => function",
    "stablehlo.compare": "direction=word , %lhs , %rhs compare_type? {} :types => function",
    "stablehlo.iota": "dim = dim=int {} :types => same",
    "stablehlo.select": "%condition , %true , %false {} :types => same",
    "stablehlo.dot_general": "%lhs , %rhs dot {} :types => function",
}  # fmt: skip
_BINARIES = {
    "arith": "addi subi muli divsi divui remsi remui ceildivsi ceildivui floordivsi minsi maxsi "
    "minui maxui andi ori xori shli shrsi shrui addf subf mulf divf remf maximumf minimumf "
    "maxnumf minnumf",
    "math": "atan2 powf copysign",
    "complex": "add sub mul div pow atan2",
    "stablehlo": "add subtract multiply divide maximum minimum and or xor remainder power atan2 "
    "shift_left shift_right_arithmetic shift_right_logical",
}
_UNARIES = {
    "arith": "negf",
    "math": "absf absi acos acosh asin asinh atan atanh cbrt ceil cos cosh ctlz cttz ctpop erf "
    "erfc exp exp2 expm1 floor log log10 log1p log2 round roundeven rsqrt sin sinh sqrt tan tanh "
    "trunc",
    "complex": "neg exp log sqrt rsqrt sin cos tan tanh conj expm1 log1p sign",
    "stablehlo": "abs negate exponential log sqrt rsqrt tanh sine cosine floor ceil sign not "
    "logistic log_plus_one exponential_minus_one cbrt",
}
_CASTS = (
    "arith.index_cast arith.index_castui arith.extui arith.extsi arith.trunci arith.extf "
    "arith.truncf arith.sitofp arith.uitofp arith.fptosi arith.fptoui arith.bitcast "
    "builtin.unrealized_conversion_cast complex.bitcast vector.bitcast tensor.cast"
)


@cache
def forms() -> dict[str, OpForm]:
    """Return the form of each op that the reader knows, but for ops with regions."""
    texts = dict(_FORMS)
    for names_by_dialect, text in ((_BINARIES, _BINARY), (_UNARIES, _UNARY)):
        for dialect, names in names_by_dialect.items():
            texts |= {f"{dialect}.{name}": text for name in names.split()}
    texts |= dict.fromkeys(_CASTS.split(), _CAST)
    texts |= {f"math.{name}": "%value flags {} :types => bool" for name in ("isnan", "isinf")}
    table: dict[str, OpForm] = {}
    for name, text in texts.items():
        steps, _, result = text.partition(" => ")
        table[name] = OpForm(tuple(steps.split()), result)
    return table
