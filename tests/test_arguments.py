"""Wrong arguments of public functions and methods: the error names the argument.

`test_wrong_arguments_are_refused` passes a value of each of `KINDS` for each parameter of each
public function, constructor and method.  `EXAMPLES` has a valid value for each annotation.
"""

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import hlo
import indexing
import simplifier
import simplifier.linear
from hlo.annotations import fits, own_classes
from hlo.arguments import checked
from hlo.shardings.mesh import Mesh
from hlo.shardings.sharding import Hints
from hlo.text.names import UnknownName
from indexing.devices.groups import GroupList
from indexing.kernels.kernel import Kernel
from indexing.kernels.sections import KernelStage
from indexing.maps import Box, Constraint, RuntimeVariable
from indexing.maps.regions.boxes import Progression
from indexing.sharding import Factor
from indexing.sharding.partition.assignment import Assignment
from indexing.tiling import XlaCandidates
from indexing.tiling.sizes.size_constraints import ALWAYS
from simplifier import Variable

ROOMS = (
    *("maps", "devices", "dataflow", "tiling", "memory", "sharding"),
    *("codegen", "equivalence", "frontends", "kernels", "drawing"),
)
MODULES = (hlo, simplifier, indexing, *[import_module(f"indexing.{room}") for room in ROOMS])

MODULE = hlo.parse(
    """
ENTRY e {
  p = f32[4,3] parameter(0)
  q = f32[3,5] parameter(1)
  i = s32[2,1] parameter(2)
  ROOT dot = f32[4,5] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g = f32[2,3] gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1,3}
}
"""
)
DOT, ENTRY = MODULE.entry.root, MODULE.entry
MAP = indexing.parse_map(
    "(d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 3], d1 in [0, 4], s0 in [0, 2]"
)
D0 = MAP.dims[0]
MEMORY = indexing.memory_profile(hlo.parse("ENTRY e { ROOT p = f32[4] parameter(0) }"))
assert isinstance(MEMORY, indexing.MemoryProfile)
SHAPE = hlo.parse_shape("f32[4,3]")
assert isinstance(SHAPE, hlo.Shape)
BUILDER = hlo.Builder("m")
VALUE = BUILDER.parameter("f32[4]", name="p")
REGION = MAP.at(1, 2)
RUNTIME = RuntimeVariable(Variable("rt0", 0, 4), 0)

BOX = Box((0,), (4,), (1,))
CONSTRAINT = Constraint(D0 * 2, 0, 3)
IMAGE = indexing.parse_map("()[s0] -> (s0), domain: s0 in [0, 3]")
LAYOUT = hlo.Layout((1, 0))
SWIZZLE = indexing.Swizzle.xor(2, 0, 3)
MESH = hlo.Mesh.of({"x": 2})
OTHER_BUILDER = BUILDER.computation("other")
OTHER_BUILDER.parameter("f32[4]", name="x")
GATHER = indexing.gather((4, 3), (2,))
TILING = indexing.tile(DOT, (2, 2), direction="input-to-output")
assert isinstance(TILING, indexing.Tiling)
LOOPED = indexing.tile(DOT, (2, 2), loop_sizes={"k": 1})
assert isinstance(LOOPED, indexing.LoopTiling)
COMPILED = indexing.CompiledTiling(DOT, "__triton", ((2, 2),), (), 1, 1, 1)
FORWARD = indexing.tile(DOT, (2, 2))
assert isinstance(FORWARD, indexing.Tiling)
BLOCKS = FORWARD.blocks(0, 2)
ORDER = indexing.BlockOrder.parse("row", TILING.grid)
PROFILE = indexing.reuse_profile(TILING, ORDER)
FACTOR = Factor(4)
ANALYSIS = indexing.tile_analysis(DOT)
assert isinstance(ANALYSIS, indexing.TileAnalysis)

ASSIGNMENT = Assignment(Mesh.of({"x": 2}), {})

MLIR = hlo.Source("module {\n}")
KERNEL = Kernel("f", None, (KernelStage("", "", MLIR, 0, 10),), None, "f.mlir")

KINDS: dict[str, Any] = {
    "None": None,
    "str": "an unknown name",
    "int": 3,
    "float": 2.5,
    "map": MAP,
    "module": MODULE,
    "array": np.zeros((2, 3), np.float32),
    "list": [None],
    "object": object(),
}

ALL = " ".join(KINDS)

# fmt: off
EXAMPLES: dict[str, tuple[Any, str]] = {
    # annotation                    valid example      other kinds that are valid
    "Affine":                       (D0,               "int"),
    "AcceptedKind":                 ("box",            ""),
    "AnyShape":                     (SHAPE,            ""),
    "AnyShape | str":               ("f32[4]",         "str"),
    "AnyShape | str | None":        (None,             "str None"),
    "ArrayLike":                    ([[0] * 3] * 4,    ALL),
    "ArrayRef | ArrayName | Instruction | str | int | None": (None, "None str int"),
    "SizeConstraints":              (ALWAYS,           ""),
    "Builder":                      (OTHER_BUILDER,    ""),
    "BuilderValue":                 (VALUE,            ""),
    "BuilderValue | None":          (VALUE,            "None"),
    "Sequence[str]":                (["B", "B"],       "str"),
    "Kernel":                       (KERNEL,           ""),
    "str | Source":                 (MLIR,             "str"),
    "Callable[..., Any]":           (lambda: None,     "map"),  # maps are called
    "Callable[..., Iterable[Affine]]": (lambda d: d,   "map"),
    "Callable[[Expr], Expr]":       (lambda e: e,      "map"),
    "Assignment":                   (ASSIGNMENT,       ""),
    "float":                        (60.0,             "int float"),
    "BlockOrder":                   (ORDER,            ""),
    "BufferAssignment | None":      (None,             "None"),
    "UsageReport | None":           (None,             "None"),
    "Path | None":                  (None,             "None"),
    "Mapping[str, LeafSharding]":   ({},               ""),
    "Mapping[str, Sequence[str]] | None": (None,       "None"),
    "Mapping[str, ShardingSpec] | None": (None,        "None"),
    "MeshSpec":                     ({"x": 2},         "str"),
    "MeshSpec | None":              ({"x": 2},         "str"),
    "Module | Computation":         (MODULE,           "module"),
    "Sequence[ShardingSpec | None] | None": (None,     "None list"),
    "tuple[PlanReason, ...]":       ((),               ""),
    "tuple[PlannedCollective, ...]": ((),              ""),
    "tuple[RankedPlan, ...]":       ((),               ""),
    "BlockOrder | str":             (ORDER,            "str"),
    "Tiling | LoopTiling":          (TILING,           ""),
    "CompiledTiling":               (COMPILED,         ""),
    "LoopModel":                    (LOOPED.model,     ""),
    "Callable[[Tiling], bool] | None": (None,          "None map"),
    "Collection[Facet]":            ((),               ""),
    "Computation":                  (ENTRY,            ""),
    "str | PathLike[str]":          (".",              "str"),
    "Level":                        ("reads",          ""),
    "Mapping[int, int] | None":     ({0: 0},           "None"),
    "Module | Computation | Instruction": (ENTRY,      "module"),
    "Expr":                         (D0 * 2,           ""),
    "Expr | Unknown":               (D0 * 2,           ""),
    "Extents":                      ((4, 5),           ""),
    "Extents | None":               ((4, 3),           "None"),
    "Extents | Sequence[Affine]":   ((4, 5),           ""),
    "Grade":                        ("may",            ""),
    "methods.Grade":                ("may",            ""),
    "RegionSide":                   ("under",          ""),
    "GroupMode":                    ("cross replica",  ""),
    "IndexingMap":                  (MAP,              "map"),
    "methods.IndexingMap":          (MAP,              "map"),
    "Instruction":                  (DOT,              ""),
    "Instruction | Computation":    (DOT,              ""),
    "Instruction | None":           (DOT,              "None"),
    "Instruction | str":            (DOT,              "str"),
    "Callable[[int, int], None] | None": (None,        "None map"),
    "Interval | None":              (None,             "None"),
    "Iterable[Affine]":             ((D0, 3),          ""),
    "Iterable[Box]":                ((BOX,),           ""),
    "Iterable[Constraint]":         ((CONSTRAINT,),    ""),
    "Iterable[IndexingMap]":        ((IMAGE,),         ""),
    "Iterable[Instruction]":        ((DOT,),           ""),
    "Iterable[Progression]":        ((Progression(0, 2),), ""),
    "Iterable[RuntimeVariable]":    ((),               ""),
    "Iterable[Variable]":           ((D0,),            ""),
    "Iterable[bool]":               ((),               ""),
    "Iterable[Sequence[int]]":      (((0, 0),),        ""),
    "Iterable[int]":                ((4, 5),           ""),
    "Iterable[tuple[int, int]]":    (((0, 1),),        ""),
    "Layout":                       (LAYOUT,           ""),
    "Layout | None":                (None,             "None"),
    "CuteLayout":                   (indexing.CuteLayout(4, 1), ""),
    "IntTuple":                     (4,                "int"),
    "Swizzle":                      (SWIZZLE,          ""),
    "Swizzle | None":               (None,             "None"),
    "Sequence[Sequence[int]]":      (((1, 0), (0, 1)), ""),
    "Mapping[str, Sequence[Sequence[int]]]": ({"a": ((1,),)}, ""),
    "Sequence[str] | Mapping[str, int] | None": (("x",), "None"),
    "tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]": ((), ""),
    "tuple[tuple[str, int], ...]":  ((), ""),
    "Tiler":                        (4,                "int"),
    "str | methods.CuteLayout":     ("4:1",            "str"),
    "Literal['lowered', 'optimized']": ("lowered",     ""),
    "SizesToTry":                   ("powers",         ""),
    "SizesToTry | None":            (None,             "None"),
    "Target":                       ("operands",       ""),
    "Instruction | Computation | Iterable[Instruction]": (DOT, ""),
    "TiledInstruction":             (ANALYSIS.instructions[0], ""),
    "TileDirection":                ("output-to-input", ""),
    "Tiling":                       (TILING,           ""),
    "TilingLimits | None":          (None,             "None"),
    "XlaCandidates":                (XlaCandidates("r = f32[] add(a, b)", ()), ""),
    "MapOrMaps":                    (MAP,              "map"),
    "Mapping[Variable, Affine]":    ({D0: 3},          ""),
    "Mapping[str, ArrayLike] | None": (None,           "None"),
    "Mapping[str, Interval] | None": (None,            "None"),
    "Hints":                        (Hints(),          ""),
    "Mapping[str, Mesh] | None":    (None,             "None"),
    "Mesh":                         (MESH,             ""),
    "Spec":                         (("x",),           "str list"),
    "Version | None":               (None,             "None int"),
    "str | Span":                   ("{manual}",       "str"),
    "tuple[Axis, ...]":             ((),               ""),
    "tuple[tuple[Axis, ...], ...]": (((),),            ""),
    "tuple[tuple[Axis, str], ...]": ((),               ""),
    "Module":                       (MODULE,           "module"),
    "Mesh | None":                  (None,             "None"),
    "Objective":                    ("bytes",          ""),
    "Objective | LoopObjective":    ("bytes",          ""),
    "LoopChoices":                  (None,             "None"),
    "Mapping[str, int] | Sequence[int] | None": (None, "None"),
    "Points":                       ((1, 2),           ""),
    "Points | None":                ((1, 2),           "None"),
    "methods.Points":               ((1, 2),           ""),
    "Region":                       (REGION,           ""),
    "ReplicaGroups":                (GroupList(()),    ""),
    "RuntimeVariable":              (RUNTIME,          ""),
    "Sequence[BlockOrder | str] | None": (None,        "None"),
    "Sequence[int]":                ((1, 2),           ""),
    "Sequence[int] | None":         (None,             "None"),
    "Sequence[int] | Shape":        ((4, 3),           ""),
    "Sequence[memory.Numbers]":     ((1, 2),           "list array"),
    "Sequence[methods.SizeOrBounds]": ((),             ""),
    "Sequence[methods.SizeOrBounds] | None": (None,    "None"),
    "Unpack[DeviceChoices]":        (None,             ""),
    "Unpack[OptionChoices]":        (None,             ""),
    "Variable":                     (D0,               ""),
    "Variable | None":              (D0,               "None"),
    "bool":                         (False,            ""),
    "int":                          (1,                "int"),
    "SupportsIndex":                (1,                "int"),
    "int | None":                   (None,             "None int"),
    "str | Sequence[int]":          ("row",            "str"),
    "int | Sequence[int]":          (1,                "int"),
    "int | Sequence[int] | None":   (None,             "None int"),
    "int | slice | EllipsisType":   (1,                "int"),
    "int | str":                    (1,                "int str"),
    "float | None":                 (None,             "None int float"),
    "list[methods.Rewrite | Applied] | None": (None,   "None list"),
    "memory.Numbers":               (1,                "int"),
    "methods.Extents":              ((4, 3),           ""),
    "methods.Extents | None":       ((4, 3),           "None"),
    "methods.Limits":               ((),               ""),
    "methods.MlirKind":             ("indexing_map",   ""),
    "methods.XlaDivision":          ("/",              ""),
    "object":                       (None,             ALL),
    "Any":                          (None,             ALL),
    "slice":                        (slice(0, 2),      ""),
    "str | Gpu | None":             (None,             "None str"),
    "str | Gpu":                    ("A100",           "str"),
    "str | IndexingMap | CuteLayout": ("4:1",          "str map"),
    "Sequence[IndexingMap]":        ((MAP,),           ""),
    "IndexingMap | Sequence[IndexingMap]": (MAP,       "map"),
    "ArrayRef | None":              (None,             "None"),
    "Shape":                        (SHAPE,            ""),
    "SwizzleFamily":                ("xor",            ""),
    "IndexingMap | None":           (None,             "None map"),
    "str":                          ("a",              "str"),
    "str | methods.Instruction":    (DOT,              "str"),
    "str | methods.Instruction | None": (None,             "None str"),
    "str | None":                   (None,             "None str"),
    "str | bytes":                  (MAP.to_json(),    "str"),
    "str | os.PathLike[str]":       ("missing.hlo",    "str"),
    "tuple[AnyShape, ...]":         ((SHAPE,),         ""),
    "tuple[Constraint, ...]":       ((),               ""),
    "tuple[Factor, ...]":           ((FACTOR,),        ""),
    "tuple[Factors, ...]":          ((((0,),),),       ""),
    "tuple[tuple[str, ...], ...]":  ((),               ""),
    "FactorKind":                   ("reduction",      ""),
    "Sequence[Factors]":            ((((0,),),),       ""),
    "tuple[Expr, ...]":             ((),               ""),
    "tuple[Instruction, ...] | None": (None,           "None"),
    "tuple[RuntimeVariable, ...]":  ((),               ""),
    "tuple[Piece, ...]":            ((BOX,),           ""),
    "tuple[Variable, ...]":         ((),               ""),
    "tuple[bool, ...]":             ((),               ""),
    "tuple[int, ...]":              ((1, 0),           ""),
    "tuple[str, ...]":              ((),               ""),
    "methods.Peak | str | None":   (None,             "None str"),
    "methods.Backend":              ("svg",            ""),
    "methods.Theme":                ("auto",           ""),
    "Theme":                        ("auto",           ""),
    "Backend":                      ("svg",            ""),
    "Shape | str":                  ("f32[4]",         "str"),
    "str | Path":                   ("picture.svg",    "str"),
    "tuple[Figure, ...]":           ((),               ""),
    "tuple[int, int] | None":       (None,             "None"),
    "tuple[tuple[int, ...], ...]":  ((),               ""),
    "tuple[tuple[int, tuple[int, ...]], ...]": ((),    ""),
}
# fmt: on

INSTANCES: dict[str, Any] = {
    "hlo.BufferShape": hlo.BufferShape(SHAPE),
    "hlo.Builder": BUILDER,
    "hlo.Layout": LAYOUT,
    "hlo.Module": MODULE,
    "hlo.OpaqueShape": hlo.OpaqueShape("token"),
    "hlo.Shape": SHAPE,
    "hlo.TupleShape": hlo.TupleShape((SHAPE,)),
    "simplifier.Variable": D0,
    "indexing.Answer": indexing.output_to_input(DOT),
    "indexing.IndexingMap": MAP,
    "indexing.maps.Box": BOX,
    "indexing.maps.Constraint": CONSTRAINT,
    "indexing.maps.Multiplicity": MAP.multiplicity(),
    "indexing.maps.Region": REGION,
    "indexing.maps.RuntimeVariable": RUNTIME,
    "indexing.memory.BufferAssignment": indexing.BufferAssignment(()),
    "indexing.memory.UsageReport": indexing.UsageReport(()),
    "indexing.memory.HloBuffer": MEMORY.buffers[0],
    "indexing.memory.MemoryProfile": MEMORY,
    "indexing.memory.CuteLayout": indexing.CuteLayout(4, 1),
    "indexing.memory.Swizzle": SWIZZLE,
    "indexing.memory.LinearLayout": indexing.LinearLayout((), ()),
    "indexing.devices.Devices": indexing.Devices(2),
    "indexing.memory.BlockOrder": ORDER,
    "indexing.memory.ReuseProfile": PROFILE,
    "indexing.drawing.Drawing": indexing.Drawing(()),
    "indexing.tiling.Collapse": indexing.collapse(DOT),
    "indexing.tiling.Gather": GATHER,
    "indexing.tiling.CompiledTiling": COMPILED,
    "indexing.tiling.LoopTiling": LOOPED,
    "indexing.tiling.Tiling": TILING,
    "indexing.tiling.TiledBlocks": BLOCKS,
    "indexing.tiling.TileAnalysis": ANALYSIS,
    "indexing.tiling.TiledComputation": ANALYSIS.symbolic,
}
"""An instance of each class, for its methods."""

MADE_BY_QUERIES = {
    *("hlo.OpSource", "hlo.StackFrame"),
    *("hlo.Module", "hlo.Computation", "hlo.Instruction", "hlo.HloError", "hlo.Source", "hlo.Span"),
    *("simplifier.Expr", "simplifier.Floor", "simplifier.SemiAffine", "simplifier.TextError"),
    *(
        "indexing.Answer",
        "indexing.Unknown",
        "indexing.maps.Reason",
        "indexing.maps.CertificateError",
        "indexing.maps.UndecidedError",
    ),
    *("indexing.maps.Verdict", "indexing.maps.Witness", "indexing.maps.Difference"),
    *("indexing.maps.Multiplicity", "indexing.tiling.Collapse", "indexing.tiling.GatherError"),
    *("indexing.tiling.TiledOperand", "indexing.tiling.Tiling", "indexing.tiling.TiledBlocks"),
    *("indexing.tiling.TileAnalysis", "indexing.tiling.TiledComputation"),
    *("indexing.memory.HloBuffer", "indexing.memory.MemoryProfile", "indexing.memory.SpacePeak"),
    *("indexing.memory.BufferAssignment", "indexing.memory.UsageReport"),
    "indexing.memory.ArrayCopy",
    *("indexing.memory.LayoutChange", "indexing.memory.LayoutProposal"),
    *("indexing.frontends.LayoutTrial", "indexing.frontends.TriedLayout"),
    "indexing.equivalence.Hazard",
    *("indexing.tiling.TiledInstruction", "indexing.tiling.SymbolicTile"),
    *("indexing.tiling.BestTilings", "indexing.tiling.RankedTiling"),
    *("indexing.tiling.XlaCandidate", "indexing.tiling.XlaCandidates"),
    "indexing.tiling.RankComparison",
    *(f"indexing.tiling.{name}" for name in ("BestLoopTilings", "LoopCandidate", "LoopRead")),
    *("indexing.tiling.LoopTiling", "indexing.tiling.TilingLoop"),
    *("indexing.tiling.CompiledTiling", "indexing.tiling.RankedChoice"),
    *("indexing.memory.Accesses", "indexing.memory.MemoryAccess"),
    *("indexing.memory.BestBlockOrders", "indexing.memory.CacheMisses"),
    *("indexing.memory.ReuseProfile", "indexing.memory.WorkingSet", "indexing.memory.BlockOrder"),
    *("indexing.memory.BankConflicts", "indexing.memory.SwizzleSearch"),
    *(f"indexing.sharding.{name}" for name in ("Refused", "SbpSignature", "SbpSignatures")),
    *(f"indexing.dataflow.{name}" for name in ("InductionVariable", "LoopFacts", "TripCount")),
    *("indexing.equivalence.Proved", "indexing.equivalence.Differs"),
    *("indexing.equivalence.FewerReads", "indexing.equivalence.Undecided"),
    "indexing.equivalence.PassResult",
    *("indexing.equivalence.Correspondence", "indexing.equivalence.CostComparison"),
    *("indexing.equivalence.TriageGroup", "indexing.equivalence.TriagedCase"),
    *(f"indexing.kernels.Kernel{name}" for name in ("", "Differs", "Proved", "Undecided")),
    "indexing.kernels.Launch",
}
"""Classes whose constructors users do not call."""

INTERNAL = {
    *("memoised", "moved", "value_of", "rebuild", "value", "tree_value"),
    *("line_text", "position", "span"),
}
"""Methods for other modules, and those called for each point or instruction."""


def callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield every public function, constructor and method, bound to an instance."""
    seen: set[int] = set()
    for module in MODULES:
        for name in module.__all__:
            value, label = getattr(module, name), f"{module.__name__}.{name}"
            if id(value) in seen or not (inspect.isclass(value) or inspect.isroutine(value)):
                continue
            seen.add(id(value))
            if not inspect.isclass(value) or label not in MADE_BY_QUERIES:
                yield label, value
            for method in vars_of(value) if label in INSTANCES else ():
                yield f"{label}.{method}", getattr(INSTANCES[label], method)


def vars_of(cls: type) -> list[str]:
    names = [name for name in dir(cls) if not name.startswith("_") and name not in INTERNAL]
    statics = [(name, inspect.getattr_static(cls, name)) for name in names]
    routines = (*[type(vars_of)], staticmethod, classmethod)
    return [name for name, value in statics if isinstance(value, routines)]


CALLABLES = dict(callables())
COMPILED = not simplifier.linear.__file__.endswith(".py")
"""True if mypyc compiled the simplifier: its functions then check arguments themselves."""
CHECKED = [
    label
    for label in CALLABLES
    if not (COMPILED and label.startswith(("simplifier.", "indexing.maps.Constraint")))
]
SPECIAL = {
    "indexing.maps.Constraint expr": "int",  # converted, as by `as_expr`
    "indexing.maps.Constraint.with_expr expr": "int",
}
"""Kinds that single parameters accept."""
ALIASES = {"point": "d1", "values": "value", "trace": "trace"}
"""The names in messages about points and values."""


def parameters_of(f: Callable[..., Any]) -> list[inspect.Parameter]:
    return [p for p in inspect.signature(f).parameters.values() if not p.name.startswith("_")]


def arguments(f: Callable[..., Any], name: str, value: object) -> tuple[list[Any], dict[str, Any]]:
    """Return valid arguments for the required parameters of `f`, and `value` for one parameter."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    parameters = parameters_of(f)
    has_varargs = any(p.kind == p.VAR_POSITIONAL for p in parameters)
    for p in parameters:
        example = value if p.name == name else EXAMPLES[str(p.annotation)][0]
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            if p.name == name:
                args += [..., value] if name == "point" else [value]
        elif p.name == name or p.default is p.empty:
            has_varargs = any(
                q.kind == q.VAR_POSITIONAL for q in inspect.signature(f).parameters.values()
            )
            if p.kind == p.POSITIONAL_ONLY or (has_varargs and p.kind != p.KEYWORD_ONLY):
                args.append(example)
            else:
                kwargs[p.name] = example
    return args, kwargs


@pytest.mark.parametrize("label", CHECKED)
def test_wrong_arguments_are_refused(label: str) -> None:
    if label == "indexing.frontends.from_jax":
        pytest.importorskip("jax", reason="needs the extra xla")
    function = CALLABLES[label]
    for p in parameters_of(function):
        allowed = EXAMPLES[str(p.annotation)][1].split()
        allowed += SPECIAL.get(f"{label} {p.name}", "").split()
        for kind, value in KINDS.items() if p.kind != p.VAR_KEYWORD else ():
            args, kwargs = arguments(function, p.name, value)
            error = error_of(function, args, kwargs)
            case = f"{label}({p.name}={kind}): {error!r}"
            if kind in allowed:
                assert isinstance(error, None | UnknownName | IndexError | OSError | CLEAN), case
            else:
                names = {p.name, ALIASES.get(p.name, p.name)}
                assert isinstance(error, CLEAN), case
                assert any(f"`{n}`" in str(error) or f"{n} needs" in str(error) for n in names), (
                    case
                )
                assert len(str(error)) < 400, case


CLEAN = TypeError | ValueError | hlo.HloError


def error_of(
    function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]
) -> Exception | None:
    """Return the exception that a call raises."""
    try:
        result = function(*args, **kwargs)
        if inspect.isgenerator(result):
            next(result, None)
    except Exception as error:  # every kind: the test compares it
        return error
    return None


def test_all_public_names_are_walked() -> None:
    assert len(CALLABLES) > 130
    classes = {label for label in INSTANCES if not any(c.startswith(label) for c in CALLABLES)}
    assert not classes, "classes without methods that take arguments"


to_input: Any = indexing.output_to_input
lazily: Any = indexing
IndexingMap: Any = indexing.IndexingMap
NEST: Any = indexing.loop_nest(DOT)
M: Any = MAP
VARIABLE: Any = Variable
PARSE: Any = hlo

# fmt: off
MESSAGES = [
    # call                                       error        message
    (lambda: to_input(MODULE),   TypeError,   "write module.entry.root"),
    (lambda: to_input(ENTRY),    TypeError,   "write computation.root"),
    (lambda: to_input("dot"),    TypeError,   r"write module.entry\['name'\]"),
    (lambda: to_input(None),     TypeError,   "must be an Instruction, not None$"),
    (lambda: to_input(DOT, "a"), TypeError,   "`output_id` must be an integer, not"),
    (lambda: to_input(DOT, exat=True), TypeError, "`exat`; did you mean `exact`"),
    (lambda: to_input(DOT, exact="no"), TypeError, "`exact` must be True or False"),
    (lambda: to_input(DOT, 7),   IndexError,  "has no output 7"),
    (lambda: lazily.loop_nest(MAP),            TypeError,   "an Instruction or a Computation, not"),
    (lambda: lazily.grouped(MAP),              TypeError,   "grouped: `instruction` must"),
    (lambda: lazily.read_counts(MAP),          TypeError,   "read_counts: `instruction` must"),
    (lambda: lazily.all_to_parameters(MODULE), TypeError,   "write module.entry$"),
    (lambda: M.then(3),                        TypeError,   "`second` must be an IndexingMap"),
    (lambda: M.then("x"),                      TypeError,   r"write indexing.parse_map\(text"),
    (lambda: M.then([MAP]),                    TypeError,   r"write maps\[0\]"),
    (lambda: M.is_equal(3),                    TypeError,   "`other` must be an IndexingMap"),
    (lambda: lazily.inverse([1, 2]),           TypeError,   "a sequence of IndexingMaps, not"),
    (lambda: lazily.image("x"),                TypeError,   "`maps` must be an IndexingMap or"),
    (lambda: lazily.image(MAP, (2.5, 3)),      TypeError,   "`points` must"),
    (lambda: lazily.image(MAP, MAP),           ValueError,  "`points` .* maps without dimensions"),
    (lambda: M.substituted({"d0": 1}),         TypeError,   "mapping of variables to expr"),
    (lambda: M.with_constraints([(D0, 1, 1)]), TypeError,   r"write Constraint\(expr, lower"),
    (lambda: M.with_grade("maybe"),            ValueError,  "must be 'exact' or 'may', not"),
    (lambda: lazily.parse_map(3),              TypeError,   "`text` must be a string, not 3"),
    (lambda: PARSE.parse(b"HloModule m"),          TypeError,   r"`text` .*write text.decode\(\)"),
    (lambda: PARSE.verify("HloModule m"),          TypeError,   r"write hlo.parse\(text\)"),
    (lambda: VARIABLE("d0", 0.5, 3),             TypeError,   "`lower`.* not 0.5|int object"),
    (lambda: IndexingMap.over((4,), lambda d: d[0]), TypeError, r"`results` .*write \["),
    (lambda: IndexingMap((), (), (), (D0.expr,)), ValueError, "is not one of the map's"),
    (lambda: IndexingMap((D0,), (), (), (3,)), TypeError, r"write as_expr\(value\)"),
    (lambda: NEST.vectorized().tile_bytes((2,)), ValueError,  "one size for each of the 2"),
    (lambda: NEST.vectorized().tile_bytes(2),    TypeError,   "`sizes` must be a sequence"),
]
# fmt: on


@pytest.mark.parametrize(("call", "error", "message"), MESSAGES)
def test_messages_say_what_to_write(
    call: Callable[[], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_integers_of_numpy_and_mappings_to_integers_are_accepted() -> None:
    one: Any = np.int64(1)
    zero: Any = np.uint8(0)
    answer = indexing.output_to_input(DOT, zero)
    assert answer.maps == indexing.output_to_input(DOT).maps
    if not COMPILED:  # mypyc accepts no integers of NumPy
        d0: Any = D0
        assert Variable("d0", zero, one) is Variable("d0", 0, 1)
        assert Constraint(d0, zero, one) == Constraint(D0.expr, 0, 1)
        assert MAP.substituted({D0: one})[0][0] == simplifier.constant(1)
    assert indexing.dims(np.array([4, 5])) == indexing.dims((4, 5))
    assert indexing.image(MAP, np.array([1, 2])) == indexing.image(MAP, (1, 2))


VALUES = [0, True, 1.5, "a", b"", None, (1,), [2], {}, {3}, np.int64(4), np.float32(5), hlo.Shape]
HINTS = [
    *(int, bool, float, str, bytes, Any, type, object, np.int64),
    *(int | None, str | bytes, list[int], tuple[int, ...], dict[str, int], Callable[[int], int]),
]


@pytest.mark.parametrize("hint", HINTS, ids=str)
def test_instances_of_an_accepted_class_fit(hint: Any) -> None:
    accepted = [value for value in VALUES if type(value) in own_classes(hint)]
    assert all(fits(value, hint) for value in accepted)


@pytest.mark.parametrize("hint", HINTS, ids=str)
def test_a_checked_function_accepts_what_fits(hint: Any) -> None:
    @checked
    def function(value: Any, *, named: Any = 0) -> None:
        return None

    plain: Any = function.__wrapped__  # type: ignore[attr-defined]  # of `functools.wraps`
    plain.__annotations__ = {"value": hint, "named": hint}
    valid = next(value for value in VALUES if fits(value, hint))
    for value in VALUES:
        for one, other in ((value, valid), (valid, value)):
            if fits(value, hint):
                function(one, named=other)
            else:
                with pytest.raises(TypeError, match="must be"):
                    function(one, named=other)
