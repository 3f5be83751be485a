"""The smallest part of two programs that still differs, as a reproducer.

The entry computations are cut at instructions that both have under one name and with one shape:
such an instruction becomes a parameter.  Delta debugging finds a large set of cuts with which the
programs still differ, on the output of the earliest instruction whose value differs.

Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (ddmin).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from hlo.formats.parser import parse
from hlo.modules.module import Computation, Instruction, Module
from hlo.shapes.shape import Shape
from hlo.text.source import HloError
from hlo.text.syntax import attributes_text
from indexing.dataflow.needed import dependencies_of
from indexing.equivalence.pairing import pair_of
from indexing.equivalence.runs import Runs, ValueGap
from indexing.maps.answers import Unknown
from indexing.ops.element import declarations_of

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Reproducer:
    """A part of two programs that differs.

    Attributes:
        before, after: the parts as modules.
        count: number of instructions of both entry computations without parameters.
    """

    before: Module
    after: Module
    count: int

    @property
    def text(self) -> str:
        """Both modules as HLO text, separated as `hlo.load_all` expects."""
        return f"{self.before}\n\n// -----\n\n{self.after}\n"


def smallest_part(before: Module, after: Module) -> Reproducer:
    """Return a small part of two modules whose executions differ; otherwise both modules.

    >>> text = '''ENTRY e { p = f32[5] parameter(0)  a = f32[5] exponential(p)
    ...   b = f32[5] %s(a)  ROOT c = f32[5] cosine(b) }'''
    >>> part = smallest_part(parse(text % "negate"), parse(text % "abs"))
    >>> print(*[instruction.opcode for instruction in part.after.entry])
    parameter abs
    """
    names = _common_names(before.entry, after.entry)
    for root in [*names, None]:
        roots = [_root(module.entry, root) for module in (before, after)]
        if _differing_part(roots, ()) is None:
            continue
        cuts = [name for name in names if name != root]
        fails = partial(_differs_without, roots, cuts)
        needed = minimise(cuts, fails)
        part = _differing_part(roots, [name for name in cuts if name not in needed])
        if part is not None:
            return part
    return Reproducer(before, after, _count(before) + _count(after))


def minimise(items: Sequence[Item], fails: Callable[[Collection[Item]], bool]) -> list[Item]:
    """Return a part of `items` that still fails and of which no single item can be left out.

    >>> minimise(range(20), lambda kept: {3, 11} <= set(kept))
    [3, 11]
    """
    kept, parts = list(items), 2
    if fails([]):
        return []
    while len(kept) > 1:
        size = -(-len(kept) // parts)
        chunks = [kept[k : k + size] for k in range(0, len(kept), size)]
        rest = [[item for item in kept if item not in chunk] for chunk in chunks]
        smaller = next(
            (each for each in (*chunks, *rest) if len(each) < len(kept) and fails(each)), None
        )
        if smaller is not None:
            kept, parts = smaller, max(2, parts - 1)
        elif parts < len(kept):
            parts = min(len(kept), 2 * parts)
        else:
            break
    return kept


def smallest_program(module: Module, fails: Callable[[Module], bool], max_attempts: int) -> Module:
    """Return a small part of a module that still fails; otherwise the module.

    Args:
        fails: returns True for a module with the fault.
        max_attempts: the limit on its calls, before and after the result is chosen.

    >>> text = '''ENTRY e { p = f32[5] parameter(0)  a = f32[5] exponential(p)
    ...   b = f32[5] sine(a)  c = f32[5] abs(b)  ROOT d = f32[5] cosine(c) }'''
    >>> part = smallest_program(parse(text), lambda m: "abs" in str(m), 40)
    >>> [instruction.opcode for instruction in part.entry]
    ['parameter', 'abs']
    """
    attempts = 0

    def smaller(root: str, cuts: Collection[str]) -> Module | None:
        nonlocal attempts
        attempts += 1
        text = part_of(module.entry[root], cuts) if attempts <= max_attempts else None
        try:
            part = None if text is None else parse(text)
        except HloError:
            return None
        return part if part is not None and fails(part) else None

    def still_fails(root: str, names: list[str], kept: Collection[str]) -> bool:
        return smaller(root, [name for name in names if name not in kept]) is not None

    computed = [i for i in module.entry if isinstance(i.shape, Shape)]
    names = [i.name for i in computed if not declarations_of(i).is_given and i.literal is None]
    for root in names:
        if smaller(root, ()) is not None:
            others = [name for name in names if name != root]
            kept = minimise(others, partial(still_fails, root, others))
            attempts = 0
            return smaller(root, [name for name in others if name not in kept]) or module
    return module


def part_of(root: Instruction, cuts: Collection[str]) -> str | None:
    """Return the text of the part of a module that computes `root`, with `cuts` as parameters.

    None if an input of the part depends on another one.

    >>> text = "p = f32[5] parameter(0)  a = f32[5] abs(p)  ROOT b = f32[5] negate(a)"
    >>> module = parse(f"ENTRY e {{ {text} }}")
    >>> [line.strip() for line in part_of(module.entry.root, ["a"]).splitlines() if "=" in line]
    ['%a = f32[5] parameter(0)', 'ROOT %b = f32[5] negate(%a)']
    """
    return next(_texts([root], cuts)) if _are_independent([root], cuts) else None


def _differs_without(
    roots: Sequence[Instruction], cuts: Sequence[str], kept: Collection[str]
) -> bool:
    """Return True if the parts differ when all `cuts` but those in `kept` are parameters."""
    return _differing_part(roots, [name for name in cuts if name not in kept]) is not None


def _differing_part(roots: Sequence[Instruction], cuts: Collection[str]) -> Reproducer | None:
    """Return the parts in which `cuts` are parameters, if executions of them differ."""
    if not _are_independent(roots, cuts):
        return None
    try:
        before, after = (parse(text) for text in _texts(roots, cuts))
        pair = pair_of(before, after)
        if isinstance(pair, Unknown) or not isinstance(Runs(pair).value_gap(), ValueGap):
            return None
    except HloError:  # a part is no valid program, for example without the start of a send
        return None
    return Reproducer(before, after, _count(before) + _count(after))


def _are_independent(roots: Sequence[Instruction], cuts: Collection[str]) -> bool:
    """Return True if all parts read the same values, none of which depends on another.

    Otherwise parameters in their place could have values that they never have together.
    """
    read = [_inputs(root, cuts) for root in roots]
    if any(set(each) != set(read[0]) for each in read):
        return False
    for inputs in read:
        for name, instruction in inputs.items():
            needed = {_label(each, cuts) for each in dependencies_of([instruction])}
            if not needed.isdisjoint(set(inputs) - {name}):
                return False
    return True


def _inputs(root: Instruction, cuts: Collection[str]) -> dict[str | int, Instruction]:
    """Return the cuts and the parameters that a part reads, by name and number."""
    body = [i for i in _body(root, cuts) if i is not root or root.opcode == "parameter"]
    labels = {_label(i, cuts): i for i in body}
    return {label: i for label, i in labels.items() if label is not None}


def _label(instruction: Instruction, cuts: Collection[str]) -> str | int | None:
    if instruction.opcode == "parameter":
        return _number(instruction)
    return instruction.name if instruction.name in cuts else None


def _root(entry: Computation, name: str | None) -> Instruction:
    return entry.root if name is None else entry[name]


def _common_names(before: Computation, after: Computation) -> list[str]:
    """Return the names of arrays that both computations compute, in the order of the first."""
    others = {instruction.name: instruction.shape for instruction in after}
    return [
        i.name
        for i in before
        if not declarations_of(i).is_given
        and isinstance(i.shape, Shape)
        and (other := others.get(i.name)) is not None
        and isinstance(other, Shape)
        and (i.shape.element_type, i.shape.dims) == (other.element_type, other.dims)
    ]


# ---------------------------------------------------------------- texts


def _texts(roots: Sequence[Instruction], cuts: Collection[str]) -> Iterator[str]:
    """Yield the HLO text of the parts that compute `roots`; both have the same parameters."""
    bodies = [list(_body(root, cuts)) for root in roots]
    numbers = sorted({_number(i) for body in bodies for i in body if i.opcode == "parameter"})
    used = {i.name for body in bodies for i in body if i.name in cuts}
    ordered = [name for name in cuts if name in used and name not in {r.name for r in roots}]
    for root, body in zip(roots, bodies, strict=True):
        yield _program_text(root, body, numbers, ordered)


def _program_text(
    root: Instruction, body: Sequence[Instruction], numbers: Sequence[int], cuts: Sequence[str]
) -> str:
    computation = root.computation
    lines = []
    for position, number in enumerate(numbers):
        own = computation.parameters[number]
        lines.append(f"  %{own.name} = {own.shape} parameter({position})")
    for position, name in enumerate(cuts, len(numbers)):
        lines.append(f"  %{name} = {computation[name].shape} parameter({position})")
    for i in body:
        if i.opcode != "parameter" and i.name not in cuts:
            lines.append(f"  {'ROOT ' if i is root else ''}{_line(i)}")
    if root.opcode == "parameter":
        lines.append(f"  ROOT %{root.name}.copy = {root.shape} copy(%{root.name})")
    called = [_plain(each) for each in _called_computations(body)]
    entry = "\n".join(["ENTRY %part {", *lines, "}"])
    return "\n\n".join([f"HloModule {computation.module.name}", *called, entry])


def _plain(computation: Computation) -> str:
    """Return the text of a called computation without metadata."""
    lines = [f"  {'ROOT ' if i.is_root else ''}{_line(i)}" for i in computation]
    return "\n".join([f"%{computation.name} {{", *lines, "}"])


def _line(i: Instruction) -> str:
    """Return the text of an instruction without metadata."""
    attributes = {name: text for name, text in i.attributes.items() if name != "metadata"}
    inside = i.literal.printed if i.literal else ", ".join(f"%{o.name}" for o in i.operands)
    return f"%{i.name} = {i.shape} {i.opcode}({inside}){attributes_text(attributes)}"


def _number(parameter: Instruction) -> int:
    return parameter.computation.parameters.index(parameter)


def _body(root: Instruction, cuts: Collection[str]) -> Iterator[Instruction]:
    """Yield the instructions that `root` needs, in text order, up to the cuts."""
    pending, seen = [root], {root}
    while pending:
        instruction = pending.pop()
        if instruction is not root and instruction.name in cuts:
            continue
        for operand in instruction.operands:
            if operand not in seen:
                seen.add(operand)
                pending.append(operand)
    yield from sorted(seen, key=lambda instruction: instruction.index)


def _called_computations(body: Sequence[Instruction]) -> list[Computation]:
    """Return the computations that instructions call, callees first."""
    ordered: dict[Computation, None] = {}

    def visit(instruction: Instruction) -> None:
        for computation in instruction.called_computations:
            for inner in computation:
                visit(inner)
            ordered.setdefault(computation, None)

    for instruction in body:
        visit(instruction)
    return list(ordered)


def _count(module: Module) -> int:
    return sum(i.opcode != "parameter" for i in dependencies_of([module.entry.root]))
