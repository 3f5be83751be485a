"""Modules made in Python: shapes are inferred, and what is wrong is told at once.

>>> import indexing  # declares the ops
>>> build = Builder("sums")
>>> add = build.computation("add")
>>> _ = add.op("add", add.parameter("f32[]"), add.parameter("f32[]"))
>>> p = build.parameter("f32[2,3]", name="p")
>>> zero = build.constant("f32[]", 0)
>>> total = build.op("reduce", p, zero, dimensions=(1,), to_apply=add, name="total")
>>> print(total.shape)
f32[2]
>>> print(build.build())
HloModule sums
<BLANKLINE>
%add {
  %parameter = f32[] parameter(0)
  %parameter.1 = f32[] parameter(1)
  ROOT %add = f32[] add(%parameter, %parameter.1)
}
<BLANKLINE>
ENTRY %main {
  %p = f32[2,3] parameter(0)
  %constant = f32[] constant(0)
  ROOT %total = f32[2] reduce(%p, %constant), dimensions={1}, to_apply=add
}
<BLANKLINE>
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hlo.formats.faults import nearest
from hlo.formats.parser import parse
from hlo.formats.parser_state import free_name
from hlo.modules.bind import check_instruction
from hlo.modules.module import Module
from hlo.modules.read_op import CALL_ATTRIBUTES, COMMON_ATTRIBUTES
from hlo.ops.attributes import Kind, string
from hlo.ops.op import OPS, Field, Op, find_op
from hlo.shapes.shape import AnyShape, parse_shape

FILENAME = "<builder>"
_TARGET = "custom_call_target"


@dataclass(frozen=True, slots=True)
class BuilderValue:
    """An instruction that a `Builder` has made: an operand of others.

    Attributes:
        name: by which the module knows it.
        shape: what it gives.
        owner: the computation it belongs to.
    """

    name: str
    shape: AnyShape
    owner: Builder

    def __repr__(self) -> str:
        return f"<{self.name}: {self.shape}>"


class Builder:
    """Makes a computation, and with it the module in which it is the entry.

    Args:
        name: of the module.
        entry: name of the computation.
    """

    def __init__(self, name: str = "module", entry: str = "main") -> None:
        self.module_name = name
        self.name = entry
        self._computations: dict[str, Builder] = {entry: self}
        self._lines: dict[str, str] = {}  # instructions by name
        self._values: dict[str, BuilderValue] = {}
        self._uses: dict[Builder, None] = {}  # the computations that instructions call
        self._parameters = 0
        self._root = ""

    def computation(self, name: str) -> Builder:
        """A new computation of the same module, to be called by instructions of others.

        >>> Builder().computation("body").parameter("f32[]").shape.dims
        ()
        """
        made = Builder(self.module_name, free_name(name, self._computations))
        made._computations = self._computations
        self._computations[made.name] = made
        return made

    # ------------------------------------------------------------ instructions

    def parameter(self, shape: AnyShape | str, name: str = "") -> BuilderValue:
        """The next argument of the computation."""
        line = f"{_text(shape)} parameter({self._parameters})"
        value = self._add(name or "parameter", line, [], [])
        self._parameters += 1
        return value

    def constant(self, shape: AnyShape | str, value: Any, name: str = "") -> BuilderValue:
        """A value: a number, nested lists, a NumPy array, or the text of a literal.

        >>> build = Builder()
        >>> build.constant("s32[2,2]", [[1, 2], [3, 4]]), build.constant("pred[]", True)
        (<constant: s32[2,2]>, <constant.1: pred[]>)
        """
        line = f"{_text(shape)} constant({_literal(value)})"
        return self._add(name or "constant", line, [], [])

    def op(
        self,
        opcode: str,
        *operands: BuilderValue,
        name: str = "",
        shape: AnyShape | str | None = None,
        **attributes: Any,
    ) -> BuilderValue:
        """An instruction of a declared op.

        Args:
            shape: the result's, where it does not follow from the operands (reshape, iota), or with
                a layout; any opcode may be used with it, if its attributes are given as text.
            attributes: values as the op's fields have them, such as ``dimensions=(1, 0)``, or their
                text; a computation is a `Builder`.

        >>> import indexing
        >>> build = Builder()
        >>> build.op("transpose", build.parameter("f32[2,3]"), dimensions=(1, 0)).shape.dims
        (3, 2)

        Raises:
            HloError: operands or attributes break a rule of the op.
            ValueError: there is no such op or attribute, or an operand is of another computation.
        """
        cls = find_op(opcode, str(attributes.get(_TARGET, "")))
        if cls is None and shape is None:
            raise ValueError(_unknown(opcode))
        for value in operands:
            if value.owner is not self:
                where = f"computation `{value.owner.name}`, not to `{self.name}`"
                raise ValueError(f"`{value.name}` belongs to {where}")
        texts = _attributes(cls, opcode, attributes)
        called = [b for given in attributes.values() for b in _builders(given)]
        inside = ", ".join(f"%{value.name}" for value in operands)
        declared = "" if shape is None else f"{_text(shape)} "
        line = f"{declared}{', '.join([f'{opcode}({inside})', *texts])}"
        return self._add(name or opcode, line, operands, called)

    def tuple(self, *elements: BuilderValue, name: str = "") -> BuilderValue:
        """All elements as one value."""
        return self.op("tuple", *elements, name=name)

    def element(self, value: BuilderValue, index: int, name: str = "") -> BuilderValue:
        """One element of a tuple."""
        return self.op("get-tuple-element", value, index=index, name=name)

    def call(self, computation: Builder, *operands: BuilderValue, name: str = "") -> BuilderValue:
        """What another computation gives for these operands."""
        return self.op("call", *operands, to_apply=computation, name=name)

    def fusion(
        self, computation: Builder, *operands: BuilderValue, kind: str = "kLoop", name: str = ""
    ) -> BuilderValue:
        """What another computation gives, compiled as one kernel."""
        return self.op("fusion", *operands, kind=kind, calls=computation, name=name)

    def root(self, value: BuilderValue) -> BuilderValue:
        """Makes `value` the result of the computation, which is otherwise the last one made."""
        self._root = value.name
        return value

    # ------------------------------------------------------------ the module

    def build(self, root: BuilderValue | None = None) -> Module:
        """The module, with this computation as its entry.

        Computations come before those that call them; those that are not called are left out.

        Raises:
            ValueError: a computation is empty.
        """
        if root is not None:
            self.root(root)
        return parse(f"HloModule {self.module_name}\n\n{self._program()}", FILENAME)

    def __str__(self) -> str:
        return str(self.build())

    def _program(self) -> str:
        return "\n\n".join([*(b._text() for b in self._called()), f"ENTRY {self._text()}\n"])

    def _called(self) -> list[Builder]:
        """The computations that this one calls, directly or not, callees first."""
        found: dict[Builder, None] = {}
        waiting: list[tuple[Builder, bool]] = [(b, False) for b in reversed(self._uses)]
        while waiting:
            builder, is_done = waiting.pop()
            if is_done:
                found[builder] = None
            elif builder not in found:
                waiting.append((builder, True))
                waiting.extend((b, False) for b in reversed(builder._uses))
        return list(found)

    def _text(self) -> str:
        if not self._lines:
            raise ValueError(f"computation `{self.name}` is empty")
        root = self._root or list(self._lines)[-1]
        lines = [
            f"  {'ROOT ' if name == root else ''}%{name} = {line}"
            for name, line in self._lines.items()
        ]
        return "\n".join([f"%{self.name} {{", *lines, "}"])

    def _add(
        self, name: str, line: str, operands: Sequence[BuilderValue], called: Iterable[Builder]
    ) -> BuilderValue:
        """The instruction `line`, checked in a module of its own."""
        name = free_name(name.removeprefix("%"), self._lines)
        trial = Builder(self.module_name, self.name)
        trial._uses = dict.fromkeys(called)
        if line.partition("(")[0].endswith(("-done", "-update")):  # which belong to a start
            trial._lines, trial._uses = dict(self._lines), self._uses | trial._uses
        else:
            for number, value in enumerate(dict.fromkeys(operands)):
                trial._lines[value.name] = f"{value.shape} parameter({number})"
        trial._lines[name] = line
        instruction = parse(trial._program(), FILENAME).entry.root
        if error := check_instruction(instruction):
            raise error
        shape = instruction.shape
        if instruction.declared_shape is None:
            line = f"{shape} {line}"
        self._lines[name] = line
        self._uses |= trial._uses
        value = self._values[name] = BuilderValue(name, shape, self)
        return value


def _unknown(opcode: str) -> str:
    if not OPS:
        return f"op {opcode!r} is not declared, nor is any: `import indexing` declares those of HLO"
    hint = nearest(opcode, OPS)
    return f"op {opcode!r} is not declared; {hint or 'with `shape=` any opcode may be used'}"


def _attributes(cls: type[Op] | None, opcode: str, attributes: Mapping[str, Any]) -> list[str]:
    """Each attribute as ``name=value``; those of the configuration make one."""
    texts, config = list[str](), list[str]()
    for key, given in attributes.items():
        field = _field(cls, opcode, key)
        text = _attribute(string if key == _TARGET else field.kind if field else None, given)
        if field and field.role == "config":
            config.append(f"{field.name} = {text}")
        else:
            texts.append(f"{field.name if field else key.replace('__', '-')}={text}")
    return [*texts, f"backend_config={{{', '.join(config)}}}"] if config else texts


def _field(cls: type[Op] | None, opcode: str, key: str) -> Field | None:
    """The field of an attribute, by its own name or its name in text; None for a common one."""
    if cls is None:
        return None
    known = {name: f for name, f in cls.fields.items() if f.role in ("attribute", "config")}
    by_text = {field.name.replace("-", "_"): field for field in known.values()}
    if found := known.get(key) or by_text.get(key):
        return found
    common = {name.replace("-", "_") for name in COMMON_ATTRIBUTES}
    if key in common or (cls.target and key in CALL_ATTRIBUTES):
        return None
    hint = nearest(key, [*known, *common])
    raise ValueError(f"{opcode} has no attribute `{key}`{hint and ': '}{hint}")


def _attribute(kind: Kind[Any] | None, given: Any) -> str:
    """The text of an attribute's value."""
    if isinstance(given, Builder):
        return given.name
    if isinstance(given, list | tuple) and given and all(isinstance(g, Builder) for g in given):
        return f"{{{', '.join(b.name for b in given)}}}"
    if kind is None or (isinstance(given, str) and not kind.example.startswith('"')):
        return str(given)
    if isinstance(given, list):
        given = tuple(given)
    return kind.print(given)


def _builders(given: Any) -> Iterator[Builder]:
    if isinstance(given, Builder):
        yield given
    elif isinstance(given, list | tuple):
        yield from (g for g in given if isinstance(g, Builder))


def _text(shape: AnyShape | str) -> str:
    return str(parse_shape(shape) if isinstance(shape, str) else shape)


def _literal(value: Any) -> str:
    """The text of a literal."""
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case list() | tuple():
            return f"{{{', '.join(map(_literal, value))}}}"
        case complex():
            return f"({value.real!r}, {value.imag!r})"
        case Mapping():
            raise TypeError(f"{value!r} is no literal")
        case _:
            return repr(value)
