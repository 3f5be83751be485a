"""Construction of modules in Python, with shape inference and immediate checks.

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

from hlo.arguments import checked
from hlo.formats.parser import parse
from hlo.formats.parser_state import free_name
from hlo.modules.instruction_checks import check_instruction
from hlo.modules.module import Module
from hlo.ops.attributes import Kind, string
from hlo.ops.common_attributes import COMMON_ATTRIBUTES, CUSTOM_CALL_ATTRIBUTES
from hlo.ops.op import OPS, Field, Op, find_op
from hlo.shapes.shape import AnyShape, parse_shape
from hlo.text.names import nearest

FILENAME = "<builder>"
_TARGET = "custom_call_target"


@dataclass(frozen=True, slots=True)
class BuilderValue:
    """An instruction of a `Builder`, to be used as an operand.

    Attributes:
        name: the instruction's name in the module.
        shape: the result shape.
        owner: the builder of its computation.
    """

    name: str
    shape: AnyShape
    owner: Builder

    def __repr__(self) -> str:
        return f"<{self.name}: {self.shape}>"


class Builder:
    """Builder of a computation, and of the module in which it is the entry.

    Args:
        name: name of the module.
        entry: name of the computation.
    Source: XLA ``xla/hlo/builder/xla_builder.h``.

    >>> import indexing  # registers the ops
    >>> build = Builder("example")
    >>> p = build.parameter("f32[2,3]", name="p")
    >>> module = build.build(build.op("transpose", p, dimensions=(1, 0)))
    >>> print(module.entry.root)
    %transpose = f32[3,2] transpose(%p), dimensions={1,0}
    """

    @checked
    def __init__(self, name: str = "module", entry: str = "main") -> None:
        self.module_name = name
        self.name = entry
        self._computations: dict[str, Builder] = {entry: self}
        self._lines: dict[str, str] = {}  # text of the instructions by name
        self._values: dict[str, BuilderValue] = {}
        self._uses: dict[Builder, None] = {}  # called computations
        self._parameters = 0
        self._root = ""

    @checked
    def computation(self, name: str) -> Builder:
        """Add a computation to the module, to be called by instructions of other computations.

        >>> Builder().computation("body").parameter("f32[]").shape.dims
        ()
        """
        made = Builder(self.module_name, free_name(name, self._computations))
        made._computations = self._computations
        self._computations[made.name] = made
        return made

    # ------------------------------------------------------------ instructions

    @checked
    def parameter(self, shape: AnyShape | str, name: str = "") -> BuilderValue:
        """Add the next parameter of the computation.

        Raises:
            HloError: `shape` is not the text of a shape.

        >>> from hlo import Builder
        >>> build = Builder()
        >>> build.parameter("f32[2,3]", name="x"), build.parameter("s32[]")
        (<x: f32[2,3]>, <parameter: s32[]>)
        """
        line = f"{_shape_text(shape)} parameter({self._parameters})"
        value = self._add(name or "parameter", line, [], [])
        self._parameters += 1
        return value

    @checked
    def constant(self, shape: AnyShape | str, value: Any, name: str = "") -> BuilderValue:
        """Add a constant; `value` is a number, nested lists, a NumPy array or literal text.

        Raises:
            HloError: `shape` is not the text of a shape, or `value` not that of a literal.
            TypeError: `value` is a mapping.

        >>> build = Builder()
        >>> build.constant("s32[2,2]", [[1, 2], [3, 4]]), build.constant("pred[]", True)
        (<constant: s32[2,2]>, <constant.1: pred[]>)
        """
        line = f"{_shape_text(shape)} constant({literal_text(value)})"
        return self._add(name or "constant", line, [], [])

    @checked
    def op(
        self,
        opcode: str,
        *operands: BuilderValue,
        name: str = "",
        shape: AnyShape | str | None = None,
        **attributes: Any,
    ) -> BuilderValue:
        """Add an instruction of a registered op.

        Args:
            opcode: as in HLO text.
            operands: instructions of this computation.
            name: name of the instruction; by default, the opcode.
            shape: the result shape, required if it cannot be inferred (reshape, iota). An
                unregistered opcode needs a shape, and attributes as text.
            attributes: values of the op's fields, such as ``dimensions=(1, 0)``, or their text. A
                called computation is given as a `Builder`.

        >>> import indexing
        >>> build = Builder()
        >>> build.op("transpose", build.parameter("f32[2,3]"), dimensions=(1, 0)).shape.dims
        (3, 2)

        Raises:
            HloError: operands or attributes violate a constraint of the op.
            ValueError: the op is not registered and `shape` is missing, the op does not have the
                attribute, or an operand belongs to another computation.
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
        declared = "" if shape is None else f"{_shape_text(shape)} "
        line = f"{declared}{', '.join([f'{opcode}({inside})', *texts])}"
        return self._add(name or opcode, line, operands, called)

    @checked
    def tuple(self, *elements: BuilderValue, name: str = "") -> BuilderValue:
        """Add a tuple of the elements.

        >>> import indexing  # registers the ops
        >>> from hlo import Builder
        >>> build = Builder()
        >>> p = build.parameter("f32[2]", name="p")
        >>> build.tuple(p, build.op("negate", p)).shape
        TupleShape(elements=(<shape f32[2]>, <shape f32[2]>))
        """
        return self.op("tuple", *elements, name=name)

    @checked
    def element(self, value: BuilderValue, index: int, name: str = "") -> BuilderValue:
        """Add a get-tuple-element, one element of a tuple.

        >>> import indexing  # registers the ops
        >>> from hlo import Builder
        >>> build = Builder()
        >>> pair = build.parameter("(f32[2], s32[])", name="pair")
        >>> build.element(pair, 1)
        <get-tuple-element: s32[]>
        """
        return self.op("get-tuple-element", value, index=index, name=name)

    @checked
    def call(self, computation: Builder, *operands: BuilderValue, name: str = "") -> BuilderValue:
        """Add a call of another computation.

        >>> build = Builder()
        >>> double = build.computation("double")
        >>> x = double.parameter("f32[2]")
        >>> _ = double.op("add", x, x)
        >>> build.call(double, build.parameter("f32[2]"))
        <call: f32[2]>
        """
        return self.op("call", *operands, to_apply=computation, name=name)

    @checked
    def fusion(
        self, computation: Builder, *operands: BuilderValue, kind: str = "kLoop", name: str = ""
    ) -> BuilderValue:
        """Add a fusion that calls another computation.

        >>> import indexing  # registers the ops
        >>> from hlo import Builder
        >>> build = Builder()
        >>> fused = build.computation("fused")
        >>> fused.op("negate", fused.parameter("f32[2]"))
        <negate: f32[2]>
        >>> build.fusion(fused, build.parameter("f32[2]"), kind="kLoop")
        <fusion: f32[2]>
        """
        return self.op("fusion", *operands, kind=kind, calls=computation, name=name)

    @checked
    def root(self, value: BuilderValue) -> BuilderValue:
        """Make `value` the root of the computation, by default the last instruction."""
        self._root = value.name
        return value

    # ------------------------------------------------------------ the module

    @checked
    def build(self, root: BuilderValue | None = None) -> Module:
        """Return the module with this computation as its entry.

        Callees precede their callers; computations that are not called are omitted.

        Args:
            root: the root of the entry; by default, its last instruction.
        Raises:
            ValueError: a computation has no instructions.
        """
        if root is not None:
            self.root(root)
        return parse(f"HloModule {self.module_name}\n\n{self._program()}", FILENAME)

    def __str__(self) -> str:
        return str(self.build())

    def _program(self) -> str:
        return "\n\n".join(
            [
                *(b._computation_text() for b in self._called_builders()),
                f"ENTRY {self._computation_text()}\n",
            ]
        )

    def _called_builders(self) -> list[Builder]:
        """Return the computations called directly or transitively, callees first."""
        finished: dict[Builder, None] = {}
        waiting: list[tuple[Builder, bool]] = [(b, False) for b in reversed(self._uses)]
        while waiting:
            builder, is_done = waiting.pop()
            if is_done:
                finished[builder] = None
            elif builder not in finished:
                waiting.append((builder, True))
                waiting.extend((b, False) for b in reversed(builder._uses))
        return list(finished)

    def _computation_text(self) -> str:
        if not self._lines:
            raise ValueError(f"computation `{self.name}` has no instructions")
        root = self._root or list(self._lines)[-1]
        lines = [
            f"  {'ROOT ' if name == root else ''}%{name} = {line}"
            for name, line in self._lines.items()
        ]
        return "\n".join([f"%{self.name} {{", *lines, "}"])

    def _add(
        self, name: str, line: str, operands: Sequence[BuilderValue], called: Iterable[Builder]
    ) -> BuilderValue:
        """Add the instruction `line`, after a check in a separate module."""
        name = free_name(name.removeprefix("%"), self._lines)
        trial = Builder(self.module_name, self.name)
        trial._uses = dict.fromkeys(called)
        if line.partition("(")[0].endswith(("-done", "-update")):  # checked against their start
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
        return f"op {opcode!r} is not registered; `import indexing` registers the ops of HLO"
    hint = nearest(opcode, OPS)
    return f"op {opcode!r} is not registered; {hint or 'an unregistered opcode needs `shape=`'}"


def _attributes(cls: type[Op] | None, opcode: str, attributes: Mapping[str, Any]) -> list[str]:
    """Return each attribute as ``name=value``; entries of ``backend_config`` form one attribute."""
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
    """Return the field of an attribute by its name in Python or text; None for a common one."""
    if cls is None:
        return None
    known = {name: f for name, f in cls.fields.items() if f.role in ("attribute", "config")}
    by_text = {field.name.replace("-", "_"): field for field in known.values()}
    if field := known.get(key) or by_text.get(key):
        return field
    common = {name.replace("-", "_") for name in COMMON_ATTRIBUTES}
    if key in common or (cls.target and key in CUSTOM_CALL_ATTRIBUTES):
        return None
    hint = nearest(key, [*known, *common])
    raise ValueError(f"{opcode} has no attribute `{key}`{hint and ': '}{hint}")


def _attribute(kind: Kind[Any] | None, given: Any) -> str:
    """Return the text of an attribute's value."""
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


def _shape_text(shape: AnyShape | str) -> str:
    return str(parse_shape(shape) if isinstance(shape, str) else shape)


def literal_text(value: Any) -> str:
    """Return the text of a literal."""
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case list() | tuple():
            return f"{{{', '.join(map(literal_text, value))}}}"
        case complex():
            return f"({value.real!r}, {value.imag!r})"
        case Mapping():
            raise TypeError(f"{value!r} is not a literal")
        case _:
            return repr(value)
