"""Mutants of the text of a kernel, each classed by the interpreter: with effect or without.

A mutant changes one place: a map (off by one, results swapped, another coefficient, a bound or a
constraint), an op, its operands or its predicate, a constant, a range of the grid, a barrier, a
clamp or a mask that is dropped.  It has an effect if an execution is at fault or leaves other
values than the instruction; some mutants keep the meaning by their nature.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from hlo.text.source import HloError, Source
from indexing.kernels.kernel import Kernel
from indexing.kernels.sections import stages
from indexing.kernels.verdicts import KernelDiffers, KernelVerdict
from tests.kernels.interpreter import execute
from tests.kernels.memory import Array, KernelFault, NotExecutable
from tests.kernels.reference import DRAWN, SEEDS, difference, expected_result, operands_of

_MAP = re.compile(r'indexing_map<"(.*?)">')
_FLOATS = ("addf", "subf", "mulf", "divf", "maximumf", "minimumf")
_INTEGERS = ("addi", "subi", "muli", "maxsi", "minsi", "andi", "ori", "xori")
_UNARIES = ("exp", "tanh", "sin", "rsqrt", "sqrt", "log1p")
_STABLE = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
_PREDICATES = {
    "cmpi": ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule"),
    "cmpf": ("oeq", "une", "olt", "ole", "ogt", "oge", "ugt", "uge", "uno"),
}  # fmt: skip
_SIGNS = (
    ("divsi", "divui"), ("remsi", "remui"), ("shrsi", "shrui"), ("minsi", "minui"),
    ("maxsi", "maxui"), ("extsi", "extui"), ("extui", "extsi"), ("slt", "ult"), ("sge", "uge"),
    ("sle", "ule"), ("ule", "sle"), ("sitofp", "uitofp"), ("index_cast", "index_castui"),
    ("index_castui", "index_cast"), ("maximumf", "maxnumf"), ("minimumf", "minnumf"),
)  # fmt: skip
_VALUE = r"%[\w.#]+"


@dataclass(frozen=True)
class Mutant:
    """A changed text of a kernel."""

    kind: str
    what: str
    text: str


@dataclass(frozen=True)
class Effect:
    """Evidence of executions: ``fault``, ``values``, ``rounding`` or ``none``; and the witness."""

    name: str
    witness: str = ""

    @property
    def is_real(self) -> bool:
        """True if the mutant is wrong."""
        return self.name in ("fault", "values")


def mutants_of(text: str, limit: int, seed: int = 0) -> list[Mutant]:
    """Return at most `limit` mutants of a text, kinds in turn, chosen by a seed."""
    random = np.random.default_rng(seed)
    by_kind: dict[str, dict[str, Mutant]] = defaultdict(dict)
    for kind, start, end, new in _edits(text):
        changed = text[:start] + new + text[end:]
        if changed != text:
            line = text.count("\n", 0, start) + 1
            old = text[start:end]
            what = f"line {line}: `{old.strip()[:90]}` -> `{new.strip()[:90]}`"
            by_kind[kind][changed] = Mutant(kind, what, changed)
    queues = {k: list(v.values()) for k, v in sorted(by_kind.items())}
    for queue in queues.values():
        random.shuffle(queue)
    chosen: list[Mutant] = []
    while len(chosen) < limit and any(queues.values()):
        for queue in queues.values():
            if queue and len(chosen) < limit:
                chosen.append(queue.pop())
    return chosen


Edit = tuple[str, int, int, str]
_PLAIN = re.compile(r" *(xtile\.insert|scf\.yield|xla\.yield|return) ")


def _whole_edits(text: str) -> Iterator[Edit]:
    """Yield edits of the memory of arguments and of the width of indices."""
    for match in re.finditer(r"dl_spec<index = (\d+)", text):
        for bits in (8, 12):
            yield "width", match.start(1), match.end(1), str(bits)
    arguments = re.findall(r"(tensor<[^{]*?>) \{([^{}]*)xla\.slice_index = (-?\d+)", text)
    for match in re.finditer(r"(tensor<[^{]*?>) \{([^{}]*)xla\.slice_index = (-?\d+)", text):
        if "invariant" not in match[2]:
            for kind, _, number in arguments:
                if kind == match[1] and number != match[3]:
                    yield "alias", match.start(3), match.end(3), number


def _edits(text: str) -> Iterator[Edit]:
    for match in _MAP.finditer(text):
        yield from _map_edits(match[1], match.start(1))
    yield from _whole_edits(text)
    start = 0
    for line in text.split("\n"):
        if "indexing_map =" not in line and (" = " in line or _PLAIN.match(line)):
            for kind, a, b, new in _line_edits(line):
                if kind != "another operand" or _have_one_type(text, start, line[a:b], new):
                    yield kind, start + a, start + b, new
            yield from _drop(text, line, start)
        start += len(line) + 1


def _have_one_type(text: str, at: int, *arguments: str) -> bool:
    """Return True if arguments of the function around a place have one type, as MLIR demands."""
    header = text[max(text.rfind("func.func", 0, at), text.rfind("entry_func", 0, at)) : at]
    types = [re.search(rf"{re.escape(name)}: ([^ ,)]+)", header) for name in arguments]
    return None not in types and len({each[1] for each in types if each}) == 1


# ------------------------------------------------------------------ maps


def _map_edits(text: str, at: int) -> Iterator[Edit]:
    head, _, domain = text.partition(", domain: ")
    results_at = head.index(" -> (") + 5
    results = head[results_at:-1].split(", ") if head[results_at:-1] else []
    position = at + results_at
    for result in results:
        end = position + len(result)
        for new in (f"{result} + 1", f"{result} - 1"):
            yield "map offset", position, end, new
        for number in re.finditer(r"\b\d+\b", result):
            value, a = int(number[0]), position + number.start()
            for other in {value + 1, value * 2, max(1, value - 1)} - {value}:
                yield "map coefficient", a, a + len(number[0]), str(other)
        position = end + 2
    for k in range(len(results) - 1):
        swapped = [*results[:k], results[k + 1], results[k], *results[k + 2 :]]
        yield "map results swapped", at + results_at, at + len(head) - 1, ", ".join(swapped)
    start = at + len(text) - len(domain)
    for each in re.finditer(r"(?:^|, )(.*?) in \[(-?\d+), (-?\d+)\]", domain):
        low, high = int(each[2]), int(each[3])
        name = "map bound" if re.fullmatch(r"\w+", each[1]) else "map constraint"
        a, b = start + each.start(2), start + each.end(3)
        for first, last in ((low, high - 1), (low, high + 1), (low + 1, high), (low, high * 2 + 1)):
            if first <= last:
                yield name, a, b, f"{first}, {last}"
        if name == "map constraint":
            yield "map constraint dropped", start + each.start(), start + each.end(), ""


# ------------------------------------------------------------------ ops


def _line_edits(line: str) -> Iterator[Edit]:
    """Yield the edits of a line: kind, start, end and the new text."""
    yield from _op_edits(line)
    yield from _operand_edits(line)
    yield from _constants(line)
    yield from _indices(line)
    yield from _tile_edits(line)
    yield from _size_edits(line)


def _op_edits(line: str) -> Iterator[Edit]:
    for table, dialect in ((_FLOATS, "arith"), (_INTEGERS, "arith"), (_UNARIES, "math"),
                           (_STABLE, "stablehlo")):  # fmt: skip
        for match in re.finditer(rf"{dialect}\.(\w+)", line):
            if match[1] in table:
                for other in table:
                    yield "op", match.start(1), match.end(1), other
    for name, predicates in _PREDICATES.items():
        for match in re.finditer(rf"arith\.{name} (\w+)", line):
            for other in predicates:
                yield "predicate", match.start(1), match.end(1), other
    for one, other in _SIGNS:
        for match in re.finditer(rf"(?:arith\.|cmpi ){one}\b", line):
            yield "sign", match.end() - len(one), match.end(), other


def _operand_edits(line: str) -> Iterator[Edit]:
    pair = re.search(rf"(?:arith|stablehlo)\.\w+(?: \w+,)? ({_VALUE}), ({_VALUE})(?:,|$| )", line)
    if pair is not None and "constant" not in line and "select" not in line:
        commutes = re.search(r"\.(addf|mulf|addi|muli|andi|ori|xori|m\w+mumf|m\w\wsi) ", line)
        kind = "commuted" if commutes else "operands swapped"
        yield kind, pair.start(1), pair.end(2), f"{pair[2]}, {pair[1]}"
        yield "operand repeated", pair.start(1), pair.end(2), f"{pair[1]}, {pair[1]}"
    select = re.search(rf"arith\.select {_VALUE}, ({_VALUE}), ({_VALUE})", line)
    if select is not None:
        yield "sides swapped", select.start(1), select.end(2), f"{select[2]}, {select[1]}"
    several = rf"(?:yield|return|call @\w+\() ?((?:{_VALUE}, )+{_VALUE})"
    for match in re.finditer(several, line):
        names = match[1].split(", ")
        for k in range(len(names) - 1):
            swapped = [*names[:k], names[k + 1], names[k], *names[k + 2 :]]
            yield "values swapped", match.start(1), match.end(1), ", ".join(swapped)


def _size_edits(line: str) -> Iterator[Edit]:
    """Yield edits of the grid, of shuffles and of positions in vectors."""
    for pattern in (r"xla\.range = \[0 : index, (\d+) : index\]", r"scf\.forall .* in \((\d+)"):
        for match in re.finditer(pattern, line):
            least = 0 if "range" in pattern else 1  # a grid without points cannot be launched
            for value in (int(match[1]) + 1, max(int(match[1]) - 1, least)):
                yield "grid", match.start(1), match.end(1), str(value)
    for match in re.finditer(r"\) to (\d+) combiner", line):
        for value in (int(match[1]) // 2, int(match[1]) * 2):
            if 0 < value < 32:
                yield "shuffle", match.start(1), match.end(1), str(value)
    for match in re.finditer(r"vector\.(?:insert|extract) .*?\[([\d, ]+)\]", line):
        at = [int(x) for x in match[1].split(",")]
        yield "vector position", match.start(1), match.end(1), ", ".join(map(str, at[::-1]))
        yield "vector position", match.start(1), match.end(1), ", ".join(str(x ^ 1) for x in at)


def _constants(line: str) -> Iterator[Edit]:
    match = re.search(r"arith\.constant (?:dense<)?([-\w.+]+)>? : (\S+)", line)
    if match is None or match[1] in ("true", "false"):
        return
    if re.fullmatch(r"-?\d+", match[1]):
        for value in (int(match[1]) + 1, int(match[1]) - 1):
            yield "constant", match.start(1), match.end(1), str(value)
    else:
        near = f"{float(match[1]) * 1.001:.6e}" if "0x" not in match[1] else "1.000000e+30"
        for text in ("0.000000e+00", "3.500000e+00", "-1.000000e+00", near):
            yield "constant", match.start(1), match.end(1), text


def _indices(line: str) -> Iterator[Edit]:
    for match in re.finditer(
        rf"(?:extract|insert|read|rmw)\b.*?\[((?:{_VALUE}, )+{_VALUE})\]", line
    ):
        names = match[1].split(", ")
        for k in range(len(names) - 1):
            swapped = [*names[:k], names[k + 1], names[k], *names[k + 2 :]]
            yield "indices swapped", match.start(1), match.end(1), ", ".join(swapped)
    for match in re.finditer(
        r"(?:tensor\.extract|xtile\.extract|pure_call @\w+\() ?(%arg(\d))\b", line
    ):
        for other in (int(match[2]) + 1, int(match[2]) - 1):
            if other >= 0:
                yield "another operand", match.start(1), match.end(1), f"%arg{other}"


def _tile_edits(line: str) -> Iterator[Edit]:
    match = re.search(r"xtile\.(?:extract|insert) .*\] \[([\d, ]+)\] \[([\d, ]+)\]", line)
    if match is not None:
        strides = [int(x) for x in match[2].split(",")]
        for k in range(len(strides)):
            new = [*strides[:k], strides[k] + 1, *strides[k + 1 :]]
            yield "tile stride", match.start(2), match.end(2), ", ".join(map(str, new))
    if match := re.search(r"xtile\.mask .* bounds \[([\d, ]+)\]", line):
        bounds = [int(x) for x in match[1].split(",")]
        for change in (1, -1, 40):
            new = [*bounds[:-1], max(1, bounds[-1] + change)]
            yield "mask bound", match.start(1), match.end(1), ", ".join(map(str, new))
    if match := re.search(r"stablehlo\.transpose .*dims = \[([\d, ]+)\]", line):
        yield "permutation", match.start(1), match.end(1), ", ".join(match[1].split(", ")[::-1])
    if match := re.search(r"broadcast_in_dim .*dims = \[(\d+)\]", line):
        yield "broadcast", match.start(1), match.end(1), str(1 - int(match[1]))
    if match := re.search(r"applies stablehlo\.(\w+)", line):
        for other in ("add", "maximum", "minimum", "multiply"):
            yield "combiner", match.start(1), match.end(1), other
    if match := re.search(r"contracting_dims = \[(\d)\] x \[(\d)\]", line):
        yield "contraction", match.start(1), match.end(1), str(int(match[1]) ^ 3)


_DROPPED = re.compile(
    rf" *({_VALUE}) = (xla_gpu\.sync_threads|xtile\.mask|arith\.andi|arith\.maxsi|arith\.minsi|"
    rf"arith\.extf|arith\.addf|math\.\w+|arith\.negf) ({_VALUE})(?:, ({_VALUE}))?"
)


_DROPPED_KINDS = {
    "xla_gpu.sync_threads": "barrier dropped", "xtile.mask": "mask dropped",
    "arith.extf": "rounding dropped", "arith.andi": "condition dropped",
    "arith.maxsi": "clamp dropped", "arith.minsi": "clamp dropped",
}  # fmt: skip


def _drop(text: str, line: str, start: int) -> Iterator[Edit]:
    """Yield the text without an op, an operand in place of its result."""
    match = _DROPPED.match(line)
    if match is None:
        return
    depth, end = 0, start + len(line) + 1
    for following in text[end:].split("\n"):
        depth += following.count("{") - following.count("}")
        if depth < 0:
            break
        end += len(following) + 1
    rest = text[start + len(line) + 1 : end]
    operands = [match[3], match[4]]
    if match[2] == "arith.extf":  # of a value that was rounded just before
        source = re.search(
            rf" {re.escape(match[3])} = arith\.truncf ({_VALUE}) : (\w+)", text[:start]
        )
        if source is None or not line.endswith(f"to {source[2]}"):
            return
        operands = [source[1]]
    for operand in filter(None, operands):
        new = re.sub(rf"{re.escape(match[1])}(?![\w.#])", operand, rest)
        kind = _DROPPED_KINDS.get(match[2], "op dropped")
        if match[2] == "xtile.mask" and operand == match[4]:
            continue
        yield kind, start, end, new


# ------------------------------------------------------------------ effects


def with_text(kernel: Kernel, text: str) -> Kernel:
    """Return a kernel with another text of its first stage."""
    return replace(kernel, stages=tuple(stages(Source(text, "mutant.mlir"))))


class Judge:
    """The executions of a kernel and its instruction with which mutants are compared."""

    def __init__(self, kernel: Kernel, seeds: tuple[int, ...] = SEEDS) -> None:
        assert kernel.fusion is not None
        self.kernel, self.seeds = kernel, seeds
        launch = kernel.launch
        self.sizes = (launch.grid, launch.threads) if launch is not None else (None, None)

    @lru_cache(None)  # noqa: B019 - a judge lives as long as a test
    def _case(self, seed: int) -> tuple[list[Array], list[Array], tuple[Array, ...]]:
        """Return operands, the results of the instruction, and those of the kernel."""
        fusion = self.kernel.fusion
        assert fusion is not None
        operands = operands_of(fusion, seed)
        own = execute(self.kernel.module, operands, *self.sizes).results
        wanted = [np.asarray(w).reshape(o.shape) for w, o in
                  zip(expected_result(fusion, operands), own, strict=True)]  # fmt: skip
        return operands, wanted, own

    def original(self, seeds: tuple[int, ...]) -> Effect:
        """Return what executions of the kernel itself show."""
        shown = [difference(own, wanted) for seed in seeds
                 for own, wanted in zip(*self._case(seed)[:0:-1], strict=True)]  # fmt: skip
        return Effect(next((n for n in ("values", "rounding") if n in shown), "none"))

    def confirm(self, mutant: Kernel, verdict: KernelVerdict) -> Effect:
        """Return what executions of a mutant show, also on the operands that may refute it.

        Raises:
            HloError: the text is invalid.
            NotExecutable: an op is not covered.
        """
        effect = self.effect_of(mutant)
        if effect.is_real or not isinstance(verdict, KernelDiffers):
            return effect
        return self.effect_of(mutant, DRAWN)

    def effect_of(self, mutant: Kernel, seeds: tuple[int, ...] = ()) -> Effect:
        """Return what executions of a mutant show.

        Args:
            seeds: those of the operands; by default, the judge's own.
        Raises:
            HloError: the text is invalid.
            NotExecutable: an op is not covered.
        """
        module, shown = mutant.module, Effect("none")
        for seed in seeds or self.seeds:
            operands, wanted, own = self._case(seed)
            if self.original((seed,)).name == "values":
                continue  # a reduction whose order is of account, for these values
            try:
                results = execute(module, operands, *self.sizes).results
            except KernelFault as fault:
                return Effect("fault", str(fault))
            for number, (one, other) in enumerate(zip(results, wanted, strict=True)):
                if one.shape != other.shape:
                    return Effect("fault", f"output {number} has the shape {one.shape}")
                name = difference(one, other)
                if name == "values":
                    place = _place(one, other)
                    return Effect("values", f"output {number} {place} for seed {seed}")
                if name and not _same(one, own[number]):
                    shown = Effect("rounding")
        return shown


def _same(one: Array, other: Array) -> bool:
    return np.array_equal(one.astype(np.float64), other.astype(np.float64), equal_nan=True)


def _place(one: Array, other: Array) -> str:
    wanted = np.asarray(other).reshape(one.shape).astype(np.float64)
    with np.errstate(all="ignore"):
        gap = np.nan_to_num(np.abs(one.astype(np.float64) - wanted), nan=np.inf)
    at = np.unravel_index(int(np.argmax(gap)), one.shape) if one.shape else ()
    return f"element {[int(i) for i in at]}: {one[at]} in place of {wanted[at]}"


__all__ = ["Effect", "HloError", "Judge", "Mutant", "NotExecutable", "mutants_of", "with_text"]
