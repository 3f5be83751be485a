"""An interpreter of the first stage of a kernel: an oracle that shares nothing with the proofs.

The lanes (threads of all blocks) execute an op at the same time, as arrays of NumPy with one row a
lane; a barrier ends an interval, and memory keeps who accessed what in which interval.  Maps are
read from the text.  `execute` raises `KernelFault` for what no kernel may do: an access out of
bounds, a race, an undefined value that is stored, a barrier or a shuffle that not all lanes reach,
an index that leaves its width.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from indexing.kernels.ir import MlirFunction, MlirModule, MlirOp, MlirRegion, MlirValue
from tests.kernels.memory import Array, Held, KernelFault, Lanes, Memory, NeedsOrder, NotExecutable
from tests.kernels.scalar_ops import scalar_op

Value: TypeAlias = Held | Memory
_MAP = re.compile(r'#xla\.indexing_map<"(.*?)">')
_ALIAS = re.compile(r'^(#\w+) = #xla\.indexing_map<"(.*?)">', re.MULTILINE)
_PARTS = re.compile(r"\((.*?)\)(?:\[(.*?)\])? -> \((.*?)\)(?:, domain: (.*))?")
WARP = 32


def dtype_of(element: str) -> Any:
    """Return the type of NumPy that holds elements of a type."""
    if element == "index":
        return np.int64
    if matched := re.fullmatch(r"i(\d+)", element):
        bits = int(matched[1])
        return np.bool_ if bits == 1 else np.dtype(f"int{max(bits, 8)}")
    names = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64}
    if element not in names:
        raise NotExecutable(f"elements of type {element}")
    return names[element]


# ------------------------------------------------------------------ maps


@dataclass(frozen=True)
class MapText:
    """A map as it is written, its expressions as trees of Python."""

    dims: tuple[str, ...]
    symbols: tuple[str, ...]
    results: tuple[ast.expr, ...]
    ranges: Mapping[str, tuple[int, int]]
    constraints: tuple[tuple[ast.expr, int, int], ...]

    @classmethod
    def read(cls, text: str) -> MapText:
        """Read the text between the quotes."""
        start, _, domain = text.partition(", domain: ")
        head, _, results = start.partition(" -> ")
        names, _, symbols = head.partition("[")
        every = re.findall(r"(?:^|, )(.*?) in \[(-?\d+), (-?\d+)\]", domain)
        if domain and len(", ".join(f"{e} in [{a}, {b}]" for e, a, b in every)) != len(domain):
            raise NotExecutable(f"the domain {domain}")
        dims = tuple(re.findall(r"\w+", names))
        variables = (*dims, *re.findall(r"\w+", symbols))
        ranges = {e: (int(a), int(b)) for e, a, b in every if e in variables}
        constraints = tuple((_tree(e), int(a), int(b)) for e, a, b in every if e not in variables)
        tree = _tree(f"[{results.strip()[1:-1]}]")
        assert isinstance(tree, ast.List)
        return cls(dims, variables[len(dims) :], tuple(tree.elts), ranges, constraints)


def _tree(text: str) -> ast.expr:
    text = text.replace(" floordiv ", " // ").replace(" mod ", " % ").replace(" / ", " // ")
    return ast.parse(text.strip(), mode="eval").body


_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
}  # fmt: skip


# ------------------------------------------------------------------ state


@dataclass(eq=False)
class Scope:
    """The values of a region, over those around it; `lanes` are places of lanes around it."""

    outer: Scope | None
    taken: Array | None = None
    values: dict[MlirValue, Value] = field(default_factory=dict)

    def __getitem__(self, name: MlirValue) -> Value:
        if name not in self.values:
            assert self.outer is not None, f"%{name.name} is not defined"
            value = self.outer[name]
            if isinstance(value, Held) and self.taken is not None:
                value = value.rows(self.taken)
            self.values[name] = value
        return self.values[name]


@dataclass(frozen=True)
class Executed:
    """Results that a kernel leaves, and remarks such as "one value is written twice"."""

    results: tuple[Array, ...]
    notes: frozenset[str]


def execute(
    module: MlirModule,
    operands: Sequence[Array],
    grid: Sequence[int] | None = None,
    threads: Sequence[int] | None = None,
) -> Executed:
    """Execute a kernel on arrays of its operands.

    Args:
        grid, threads: the launch; by default, as the text states it.
    Raises:
        KernelFault: the kernel is at fault.
        NotExecutable: an op is not covered.
    """
    try:
        try:
            return Interpreter(module, True).run(operands, grid, threads)
        except NeedsOrder:
            return Interpreter(module, False).run(operands, grid, threads)
    except (ValueError, IndexError, KeyError) as error:  # shapes or ranks that do not fit
        raise NotExecutable(f"ill-typed text: {error}") from error


class Interpreter:
    """One execution.

    Attributes:
        is_wide: True if the iterations of a loop that carries buffers alone are lanes.
    """

    def __init__(self, module: MlirModule, is_wide: bool) -> None:
        self.module, self.is_wide = module, is_wide
        assert module.entry is not None
        text = module.source.text[: module.entry.span.start + 1]  # a log repeats the names after it
        self.aliases = dict(_ALIAS.findall(text))
        self.maps: dict[int, MapText] = {}
        width = re.search(r"dl_spec<index = (\d+)", str(module.attributes))
        self.width = int(width[1]) if width else 64
        self.instances = 0
        self.notes: set[str] = set()
        self.memories: list[Memory] = []

    # -------------------------------------------------------------- launch

    def run(
        self, operands: Sequence[Array], grid: Sequence[int] | None, threads: Sequence[int] | None
    ) -> Executed:
        """Execute the entry."""
        entry = self.module.entry
        assert entry is not None
        self.is_tiled = entry.op_name == "xtile.entry_func"
        stated = self._stated_sizes()
        self.grid = tuple(grid or stated[0])
        self.threads = tuple(threads or stated[1])
        if self.is_tiled:
            self.grid, self.threads = (self._tiles(self.grid if grid else None), 1, 1), (1, 1, 1)
        if any(op.name == "scf.forall" for op in entry.ops):
            self.threads = (1, 1, 1)
        blocks, size = math.prod(self.grid), math.prod(self.threads)
        block, thread = np.divmod(np.arange(blocks * size), size)
        self.intervals = np.zeros(blocks, np.int64)
        self.block_threads = np.full(blocks, size)
        self.lanes = Lanes(block, thread, np.zeros(len(block), np.int64))
        scope = Scope(None)
        arguments = self._arguments(entry, operands)
        scope.values.update(zip(entry.arguments, arguments, strict=True))
        assert entry.body is not None
        results = self.region(entry.body, scope)
        if self.is_tiled:
            results = arguments[len(operands) : -1]
        return Executed(tuple([self._result(r) for r in results]), frozenset(
            self.notes.union(*[m.notes for m in self.memories])))  # fmt: skip

    def _result(self, memory: Value) -> Array:
        assert isinstance(memory, Memory)
        if not memory.ok.all():
            missing = np.unravel_index(int(np.argmin(memory.ok[0])), memory.dims or (1,))
            raise KernelFault("missing", f"an element of {memory.name} is never written",
                              element=[int(i) for i in missing])  # fmt: skip
        return np.array(memory.data[0].reshape(memory.dims))

    def _stated_sizes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        sizes = {"b": [1, 1, 1], "t": [1, 1, 1]}
        for op in self.module.walk():
            if op.name in ("xla.workgroup_id", "gpu.block_id", "gpu.thread_id"):
                which = sizes["t" if op.name == "gpu.thread_id" else "b"]
                k = "xyz".index(op.attributes["dimension"])
                which[k] = max(which[k], op.attributes["xla.range"][1] + 1)
        return tuple(sizes["b"]), tuple(sizes["t"])

    def _tiles(self, grid: Sequence[int] | None) -> int:
        text = self.module.source.text
        if matched := re.search(r"tile_count : (\d+)", text):
            return int(matched[1])
        if grid is not None:
            return math.prod(grid)
        bounds = re.findall(r"\bpid_0 in \[0, (\d+)\]", text)
        return max([int(b) + 1 for b in bounds], default=1)

    def _arguments(self, entry: MlirFunction, operands: Sequence[Array]) -> list[Value]:
        written = {v for op in self.module.walk() if op.name in _WRITES for v in op.operands}
        is_written = bool(written)
        memories: dict[Any, Memory] = {}
        arguments: list[Value] = []
        given = list(zip(entry.arguments, entry.argument_attributes, strict=True))
        variant = {a.get("xla.slice_index") for _, a in given if "xla.invariant" not in a}
        for number, (argument, attributes) in enumerate(given):
            if argument.type.kind not in ("tensor", "memref"):
                arguments.append(Held(self.lanes.block))
                continue
            key = attributes.get("xla.slice_index", ("own", number))
            if key in memories and number < len(operands):
                raise NotExecutable("two operands in one memory")
            if key not in memories:
                given_value = operands[number] if number < len(operands) else None
                tracked = is_written and attributes.get("xla.slice_index") in variant
                memories[key] = _memory(argument, given_value, tracked)
            arguments.append(memories[key])
        self.memories += memories.values()
        return arguments

    # -------------------------------------------------------------- regions

    def region(self, region: MlirRegion, scope: Scope) -> list[Value]:
        """Execute a region on the current lanes; return what its terminator yields."""
        if len(region.blocks) != 1:
            raise NotExecutable("several blocks")
        *ops, last = region.block.ops
        for op in ops:
            self.op(op, scope)
        return [scope[v] for v in last.operands]

    def within(
        self, lanes: Lanes, region: MlirRegion, outer: Scope, taken: Array | None,
        arguments: Mapping[MlirValue, Value],
    ) -> list[Value]:  # fmt: skip
        """Execute a region on other lanes."""
        before, self.lanes = self.lanes, lanes
        try:
            return self.region(region, Scope(outer, taken, dict(arguments)))
        finally:
            self.lanes = before

    def call(self, name: str, arguments: Sequence[Value]) -> list[Value]:
        """Call a function on the current lanes."""
        function = self.module.function(name)
        if function.body is None:
            raise NotExecutable(f"a call of @{name}")
        scope = Scope(None)
        scope.values.update(zip(function.arguments, arguments, strict=True))
        return self.region(function.body, scope)

    def op(self, op: MlirOp, scope: Scope) -> None:
        """Execute an op."""
        handler = _HANDLERS.get(op.name)
        if handler is not None:
            results = handler(self, op, scope)
        elif op.name.startswith(("arith.", "math.", "complex.", "stablehlo.")):
            operands = [self.held(scope[v]) for v in op.operands]
            results = [scalar_op(op, operands, self.width, self)]
        else:
            raise NotExecutable(f"`{op.name}`")
        for name, value in zip(op.results, results, strict=True):
            scope.values[name] = value

    def held(self, value: Value) -> Held:
        """Return a value that is not a buffer."""
        if isinstance(value, Memory):
            raise NotExecutable("a buffer where a value is expected")
        return value

    def certain(self, value: Value, what: str) -> Array:
        """Return a value that decides something, which must be defined."""
        held = self.held(value)
        if held.ok is not None and not held.ok.all():
            raise KernelFault("undefined", f"{what} is undefined")
        return held.data

    def index(self, values: Sequence[MlirValue], scope: Scope) -> list[Array]:
        """Return indices."""
        return [self.certain(scope[v], "an index") for v in values]

    def fits(self, data: Array, what: str) -> Array:
        """Check that an index fits in its width."""
        limit = 1 << (self.width - 1)
        if self.width < 64 and data.size and (data.min() < -limit or data.max() >= limit):
            raise KernelFault("overflow", what)
        return data

    # -------------------------------------------------------------- maps

    def map_of(self, op: MlirOp) -> MapText:
        """Return the map of an op, from its text."""
        if id(op) not in self.maps:
            line = self.module.source.text[op.span.start :].split("\n", 1)[0]
            if matched := _MAP.search(line):
                text = matched[1]
            else:
                (name,) = [n for n in re.findall(r"#\w+", line) if n in self.aliases]
                text = self.aliases[name]
            self.maps[id(op)] = MapText.read(text)
        return self.maps[id(op)]

    def expression(self, tree: ast.expr, values: Mapping[str, Array]) -> Array:
        """Return the value of an expression of a map."""
        match tree:
            case ast.Constant():
                assert isinstance(tree.value, int)
                return np.array([tree.value])
            case ast.Name():
                return values[tree.id]
            case ast.UnaryOp(op=ast.USub()):
                return -self.expression(tree.operand, values)
            case ast.BinOp():
                one = self.expression(tree.left, values)
                other = self.expression(tree.right, values)
                value = _OPERATORS[type(tree.op)](one, other)
                return self.fits(value, f"the index {ast.unparse(tree)}")
        raise NotExecutable(ast.dump(tree))

    def domain(self, text: MapText, values: Mapping[str, Array], names: Sequence[str]) -> Array:
        """Return which lanes are in the domain of a map."""
        inside = np.ones(1, bool)
        for name in names:
            low, high = text.ranges[name]
            inside = inside & (values[name] >= low) & (values[name] <= high)
        for tree, low, high in text.constraints:
            value = self.expression(tree, values)
            inside = inside & (value >= low) & (value <= high)
        return inside


def _memory(argument: MlirValue, value: Array | None, is_tracked: bool) -> Memory:
    """Return the memory of an argument, defined if it has a value."""
    dims, dtype = argument.type.dims, np.dtype(dtype_of(argument.type.element))
    size = math.prod(dims)
    data = np.zeros((1, size), dtype) if value is None else value.reshape(1, size).copy()
    if data.dtype != dtype:  # a byte of a predicate or a number of four bits
        data = data.astype(dtype) if data.dtype.kind == "V" else data.view(dtype)
    ok = np.full((1, size), value is not None)
    return Memory(f"%{argument.name}", dims, data, ok, is_tracked=is_tracked)


def _merge(old: Value, lanes: Array, new: Value, count: int) -> Value:
    """Return a carried value after some lanes have a new one; a buffer stays the same."""
    if isinstance(old, Memory) or isinstance(new, Memory):
        if old is not new:
            raise NotExecutable("two buffers for one value")
        return old
    return old.merge(lanes, new, count)


# ------------------------------------------------------------------ control


def _ids(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    which = self.threads if op.name == "gpu.thread_id" else self.grid
    linear = self.lanes.thread if op.name == "gpu.thread_id" else self.lanes.block
    k = "xyz".index(op.attributes["dimension"])
    value = linear // math.prod(which[:k]) % which[k]
    low, high = op.attributes["xla.range"]
    if ((value < low) | (value > high)).any():
        raise KernelFault("range", f"{op.name} {op.attributes['dimension']} leaves its range")
    return [Held(value)]


def _loop(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    text, groups = self.map_of(op), op.regions[0].block.groups
    values = dict(zip(text.dims, self.index(op.group("dims"), scope), strict=True))
    carried = [scope[v] for v in op.group("inits")]
    ranges = [range(low, high + 1) for low, high in (text.ranges[s] for s in text.symbols)]
    count = len(self.lanes)
    names = (*groups["symbols"], *groups["results"])
    wide = self.is_wide and not self.lanes.instance and all(isinstance(c, Memory) for c in carried)
    points = list(itertools.product(*ranges))
    grid = np.array(points, np.int64).reshape(len(points), len(ranges))
    steps = [grid] if wide else [row[None] for row in grid]
    for step in steps:
        size = len(step)
        if not size:
            continue
        full = {d: np.repeat(np.broadcast_to(v, count)[None], size, 0) for d, v in values.items()}
        full |= {s: np.repeat(step[:, k, None], count, 1) for k, s in enumerate(text.symbols)}
        inside = np.broadcast_to(self.domain(text, full, text.dims), (size, count))
        number, taken = np.nonzero(inside)
        if not len(taken):
            continue
        lanes = self.lanes.some(taken)
        if wide:
            self.instances += 1
            lanes = Lanes(lanes.block, lanes.thread, number, self.instances)
        point = {d: v[number, taken] for d, v in full.items()}
        results = [self.expression(tree, point) for tree in text.results]
        counters = [self.fits(point[s], "the counter of a loop") for s in text.symbols]
        inner = [Held(value) for value in (*counters, *results)]
        given: dict[MlirValue, Value] = dict(zip(names, inner, strict=True))
        now = [c if isinstance(c, Memory) else c.rows(taken) for c in carried]
        given |= dict(zip(groups["carried"], now, strict=True))
        new = self.within(lanes, op.regions[0], scope, taken, given)
        if wide:
            for old, one in zip(carried, new, strict=True):
                _merge(old, taken, one, count)
        else:
            carried = [_merge(o, taken, n, count) for o, n in zip(carried, new, strict=True)]
    return carried


def _for(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    low, high, step = (self.certain(scope[op.operand(r)], "a bound")
                       for r in ("lower", "upper", "step"))  # fmt: skip
    groups = op.regions[0].block.groups
    carried = [scope[v] for v in op.group("inits")]
    count, induction = len(self.lanes), low
    if (step <= 0).any():
        raise KernelFault("endless", "a loop whose step is not positive")
    for _ in range(1 << 12):
        active = np.broadcast_to(induction < high, count)
        if not active.any():
            return carried
        (taken,) = np.nonzero(active)
        now = np.broadcast_to(induction, count)[taken]
        given: dict[MlirValue, Value] = {groups["induction"][0]: Held(now)}
        parts = [c if isinstance(c, Memory) else c.rows(taken) for c in carried]
        given |= dict(zip(groups["carried"], parts, strict=True))
        new = self.within(self.lanes.some(taken), op.regions[0], scope, taken, given)
        carried = [_merge(o, taken, n, count) for o, n in zip(carried, new, strict=True)]
        induction = self.fits(induction + step, "the counter of a loop")
    raise NotExecutable("a loop without an end")


def _if(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    count = len(self.lanes)
    chosen = np.broadcast_to(self.certain(scope[op.operands[0]], "a condition"), count)
    results: list[Value] | None = None
    for taken, region in zip((np.nonzero(chosen)[0], np.nonzero(~chosen)[0]), op.regions,
                             strict=False):  # fmt: skip
        if not len(taken):
            continue
        new = self.within(self.lanes.some(taken), region, scope, taken, {})
        if len(taken) == count:
            return new
        if results is None:
            results = [n if isinstance(n, Memory) else _spread(n, taken, count) for n in new]
        else:
            results = [_merge(o, taken, n, count) for o, n in zip(results, new, strict=True)]
    return results or []


def _spread(value: Held, taken: Array, count: int) -> Held:
    data = np.zeros((count, *value.data.shape[1:]), value.data.dtype)
    return Held(data, np.zeros(data.shape, bool)).merge(taken, value, count)


def _forall(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    sizes = [int(s) for s in op.attributes["sizes"]]
    size, count = math.prod(sizes), len(self.lanes)
    taken, thread = np.divmod(np.arange(count * size), size)
    groups = op.regions[0].block.groups
    given: dict[MlirValue, Value] = {}
    rest = thread
    for name, extent in zip(groups["induction"], sizes, strict=True):
        given[name] = Held(rest % extent)
        rest = rest // extent
    inits = [scope[v] for v in op.group("inits")]
    given |= dict(zip(groups["carried"], inits, strict=True))
    lanes = Lanes(self.lanes.block[taken], thread, np.zeros(len(taken), np.int64))
    self.block_threads[:] = size
    self.within(lanes, op.regions[0], scope, taken, given)
    return inits


def _in_parallel(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    for inner in op.regions[0].block.ops:
        if inner.name == "tensor.parallel_insert_slice" and (
            scope[inner.operand("value")] is not scope[inner.operand("target")]
        ):
            raise NotExecutable("a slice of another buffer")
    return []


def _call(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    return self.call(op.attributes["callee"], [scope[v] for v in op.group("arguments")])


def _apply(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    text = self.map_of(op)
    every = self.index([*op.group("dims"), *op.group("symbols")], scope)
    values = dict(zip((*text.dims, *text.symbols), every, strict=True))
    return [Held(self.expression(tree, values)) for tree in text.results]


# ------------------------------------------------------------------ threads


def _barrier(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    present = np.bincount(self.lanes.block, minlength=len(self.intervals))
    if ((present != 0) & (present != self.block_threads)).any() or self.lanes.instance:
        raise KernelFault("barrier", "not all threads of a block reach a barrier")
    self.intervals[present > 0] += 1
    return [scope[v] for v in op.group("values")]


def _share(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    kind = op.result.type
    shape = len(self.intervals), math.prod(kind.dims)
    memory = Memory(f"%{op.result.name}", kind.dims, np.zeros(shape, dtype_of(kind.element)),
                    np.zeros(shape, bool), is_shared=True)  # fmt: skip
    self.memories.append(memory)
    return [memory]


def _shuffle(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    count = len(self.lanes)
    now = [self.held(scope[v]).full(count) for v in op.group("values")]
    place = np.full((len(self.intervals), int(self.block_threads.max()) + WARP), -1)
    place[self.lanes.block, self.lanes.thread] = np.arange(count)
    distance = int(op.attributes["max_distance"])
    while distance:
        lane = self.lanes.thread % WARP
        moved = self.lanes.thread + np.where(lane + distance < WARP, distance, 0)
        partner = place[self.lanes.block, moved]
        others: list[Value] = []
        for value in now:
            ok = np.ones(count, bool) if value.ok is None else value.ok
            others.append(Held(value.data[partner], ok[partner] & (partner >= 0)))
        results = self.call(op.attributes["combiner"], [*now, *others])
        now = [self.held(r).full(count) for r in results]
        distance //= 2
    return list(now)


def _atomic(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    memory = scope[op.operand("target")]
    assert isinstance(memory, Memory)
    index = [np.broadcast_to(i, len(self.lanes)) for i in self.index(op.group("indices"), scope)]
    row, flat = memory.places(index, self.lanes, "atomic access")
    rest = np.arange(len(self.lanes))
    (current,) = op.regions[0].block.arguments
    while len(rest):
        _, first = np.unique((row * memory.data.shape[1] + flat)[rest], return_index=True)
        taken, lanes = rest[first], self.lanes.some(rest[first])
        place = row[taken], flat[taken]
        value = Held(memory.data[place], memory.ok[place])
        (new,) = self.within(lanes, op.regions[0], scope, taken, {current: value})
        memory.write([i[taken] for i in index], self.held(new), lanes, self.intervals, True)
        rest = np.delete(rest, first)
    return [memory]


# ------------------------------------------------------------------ memory


def _elements(value: Held, index: Sequence[Array]) -> Held:
    """Return elements of a value by one index for each of its dimensions."""
    if len(index) != value.data.ndim - 1:
        raise NotExecutable(f"{len(index)} indices of a value of {value.data.ndim - 1} dimensions")
    count = max([len(value.data), *[len(i) for i in index]])
    for i, size in zip(index, value.data.shape[1:], strict=False):
        if ((i < 0) | (i >= size)).any():
            raise KernelFault("bounds", "an element of a vector")
    rows = np.arange(count) if len(value.data) > 1 else np.zeros(count, np.int64)
    place = (rows, *[np.broadcast_to(i, count) for i in index])
    return Held(value.data[place], None if value.ok is None else value.ok[place])


def _extract(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    source, index = scope[op.operand("source")], self.index(op.group("indices"), scope)
    if isinstance(source, Held):
        return [_elements(source, index)]
    return [source.read(index, self.lanes, self.intervals)]


def _insert(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    target, value = scope[op.operand("target")], self.held(scope[op.operand("value")])
    index = self.index(op.group("indices"), scope)
    if not isinstance(target, Memory):
        raise NotExecutable("an insert into a tensor that is not a buffer")
    target.write(index, value, self.lanes, self.intervals)
    return [target]


def _conditional(self: Interpreter, op: MlirOp, scope: Scope) -> tuple[Array, Lanes, list[Array]]:
    condition = self.certain(scope[op.operand("condition")], "a condition")
    (taken,) = np.nonzero(np.broadcast_to(condition, len(self.lanes)))
    values = [self.held(scope[v]).rows(taken) for v in op.group("indices")]
    return taken, self.lanes.some(taken), [self.certain(v, "an index") for v in values]


def _predicated_insert(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    target, value = scope[op.operand("target")], self.held(scope[op.operand("value")])
    assert isinstance(target, Memory)
    taken, lanes, index = _conditional(self, op, scope)
    if len(taken):
        target.write(index, value.rows(taken), lanes, self.intervals)
    return [target]


def _predicated_extract(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    source, otherwise = scope[op.operand("source")], self.held(scope[op.operand("otherwise")])
    assert isinstance(source, Memory)
    taken, lanes, index = _conditional(self, op, scope)
    if not len(taken):
        return [otherwise]
    return [otherwise.merge(taken, source.read(index, lanes, self.intervals), len(self.lanes))]


def _transfer_read(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    source = scope[op.operand("source")]
    assert isinstance(source, Memory)
    index = self.index(op.group("indices"), scope)
    if op.attributes.get("in_bounds") not in ((True,), None):
        raise NotExecutable("a vector that is out of bounds")
    (length,) = op.result.type.dims
    place = np.zeros(1, np.int64)
    for each, size in zip(index, source.dims, strict=True):
        place = place * size + each
    if (place % length).any():
        raise KernelFault("alignment", f"a vector of {length} elements")
    parts = [source.read([*index[:-1], index[-1] + k], self.lanes, self.intervals)
             for k in range(length)]  # fmt: skip
    ok = np.stack([np.broadcast_to(True if p.ok is None else p.ok, p.data.shape) for p in parts], 1)
    return [Held(np.stack([p.data for p in parts], 1), ok)]


def _position(self: Interpreter, op: MlirOp, scope: Scope) -> list[Array]:
    return [np.array([p]) if isinstance(p, int) else self.certain(scope[p], "a position")
            for p in op.attributes["position"]]  # fmt: skip


def _vector_extract(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    return [_elements(self.held(scope[op.operand("source")]), _position(self, op, scope))]


def _vector_insert(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    count, position = len(self.lanes), _position(self, op, scope)
    value = self.held(scope[op.operand("value")])
    target = self.held(scope[op.operand("target")]).full(count)
    for p, size in zip(position, target.data.shape[1:], strict=False):
        if ((p < 0) | (p >= size)).any():
            raise KernelFault("bounds", "an element of a vector")
    place = (np.arange(count), *[np.broadcast_to(p, count) for p in position])
    target.data[place] = value.data
    if target.ok is None and value.ok is None:
        return [target]
    ok = np.ones(target.data.shape, bool) if target.ok is None else target.ok
    ok[place] = True if value.ok is None else value.ok
    return [Held(target.data, ok)]


def _broadcast(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    value, dims = self.held(scope[op.operand("value")]), op.result.type.dims

    def wide(array: Array) -> Array:
        shape = len(array), *[1] * (len(dims) + 1 - array.ndim), *array.shape[1:]
        return np.broadcast_to(array.reshape(shape), (len(array), *dims))

    return [Held(wide(value.data), None if value.ok is None else wide(value.ok))]


def _from_elements(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    (value,) = [self.held(scope[v]) for v in op.operands]
    shape = len(value.data), *op.result.type.dims
    return [Held(value.data.reshape(shape), None if value.ok is None else value.ok.reshape(shape))]


def _poison(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    kind = op.result.type
    shape = 1, *(kind.dims if kind.is_shaped else ())
    return [Held(np.zeros(shape, dtype_of(kind.element)), np.zeros(shape, bool))]


def _constant(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    value, kind = np.asarray(op.attributes["value"]), op.result.type
    dims = kind.dims if kind.is_shaped else ()
    return [Held(np.broadcast_to(value, dims).astype(dtype_of(kind.element))[None])]


# ------------------------------------------------------------------ tiles


def _tile(self: Interpreter, op: MlirOp, memory: Memory, scope: Scope) -> tuple[Array, Array]:
    """Return the positions of a tile's elements, and which are in bounds."""
    count = len(self.lanes)
    sizes, strides = op.attributes["sizes"], op.attributes["strides"]
    offsets = self.index(op.group("indices"), scope)
    if not len(offsets) == len(sizes) == len(memory.dims):
        raise NotExecutable("a tile of another rank than its memory")
    flat, inside = np.zeros((count, *[1] * len(sizes)), np.int64), np.ones(1, bool)
    for k, (offset, size, stride) in enumerate(zip(offsets, sizes, strides, strict=True)):
        shape = [1] * len(sizes)
        shape[k] = size
        steps = np.arange(size).reshape(1, *shape) * stride
        index = np.broadcast_to(offset, count).reshape(count, *[1] * len(sizes)) + steps
        inside = inside & (index >= 0) & (index < memory.dims[k])
        flat = flat * memory.dims[k] + np.clip(index, 0, memory.dims[k] - 1)
    return np.broadcast_to(flat, (count, *sizes)), np.broadcast_to(inside, (count, *sizes))


def _tile_extract(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    memory = scope[op.operand("source")]
    assert isinstance(memory, Memory)
    flat, inside = _tile(self, op, memory, scope)
    shape = len(flat), *op.result.type.dims
    ok = (memory.ok[0][flat] & inside).reshape(shape)
    return [Held(memory.data[0][flat].reshape(shape), None if ok.all() else ok)]


def _tile_insert(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    memory, value = scope[op.operand("target")], self.held(scope[op.operand("value")])
    assert isinstance(memory, Memory)
    flat, inside = _tile(self, op, memory, scope)
    full = value.full(len(flat))
    lane = np.nonzero(inside)[0]
    data = full.data.reshape(flat.shape)[inside]
    ok = None if full.ok is None else full.ok.reshape(flat.shape)[inside]
    index = list(np.unravel_index(flat[inside], memory.dims)) if memory.dims else []
    memory.write(index, Held(data, ok), self.lanes.some(lane), self.intervals)
    return []


def _mask(self: Interpreter, op: MlirOp, scope: Scope) -> list[Value]:
    value, masked = (self.held(scope[op.operand(r)]) for r in ("value", "masked"))
    shape = value.data.shape
    inside = np.ones(shape, bool)
    for k, bound in enumerate(op.attributes["bounds"]):
        extent = [1] * len(shape)
        extent[k + 1] = shape[k + 1]
        inside &= np.arange(shape[k + 1]).reshape(extent) < bound
    fill = masked.data.reshape(len(masked.data), *[1] * (len(shape) - 1))
    ok = None if value.ok is None else value.ok | ~inside
    return [Held(np.where(inside, value.data, fill), ok)]


_WRITES = frozenset(["tensor.insert", "xla.predicated_insert", "xla.atomic_rmw", "xtile.insert"])
_HANDLERS: dict[str, Callable[[Interpreter, MlirOp, Scope], list[Value]]] = {
    "xla.workgroup_id": _ids, "gpu.block_id": _ids, "gpu.thread_id": _ids, "xla.loop": _loop,
    "scf.for": _for, "scf.if": _if, "scf.forall": _forall, "scf.forall.in_parallel": _in_parallel,
    "xla.pure_call": _call, "func.call": _call, "call": _call, "xla.apply_indexing": _apply,
    "xla_gpu.sync_threads": _barrier, "xla_gpu.allocate_shared": _share,
    "xla_gpu.shuffle_reduce": _shuffle, "xla.atomic_rmw": _atomic, "tensor.extract": _extract,
    "tensor.insert": _insert, "xla.predicated_insert": _predicated_insert,
    "xla.predicated_extract": _predicated_extract, "vector.transfer_read": _transfer_read,
    "vector.extract": _vector_extract, "vector.insert": _vector_insert,
    "vector.broadcast": _broadcast, "ub.poison": _poison, "arith.constant": _constant,
    "tensor.from_elements": _from_elements,
    "xtile.extract": _tile_extract, "xtile.insert": _tile_insert, "xtile.mask": _mask,
}  # fmt: skip
