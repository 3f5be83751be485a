"""Modules, computations and instructions, with names resolved to objects.

Instructions are compared by identity, modules by structure. All are immutable after parsing; users,
ops and inferred shapes are computed on first use. The parser supplies the ops (`Semantics`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import lru_cache
from threading import RLock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from hlo import methods
from hlo.html import preformatted_html
from hlo.modules.deferred import Deferrable
from hlo.modules.forms import METADATA, InstructionForm, InstructionText, Values
from hlo.modules.header import ModuleHeader
from hlo.modules.module_search import ModuleSearch
from hlo.modules.op_source import OpSource, op_source
from hlo.ops.op import Op
from hlo.shapes.shape import AnyShape
from hlo.text.names import UnknownName
from hlo.text.source import Source, Span
from hlo.text.syntax import AttributeText, attributes_text
from hlo.weak_references import weakly_referenced

if TYPE_CHECKING:
    from hlo.shardings.mesh import Mesh
    from hlo.shardings.sharding import Sharding

Result = TypeVar("Result")

_UNSET: Any = object()
NO_ATTRIBUTES: Mapping[str, AttributeText] = MappingProxyType({})
_shape_text = lru_cache(maxsize=1 << 11)(str)  # a module has few distinct shapes


class Semantics(NamedTuple):
    """An interpretation of instructions (`hlo.modules.instruction_checks.REGISTERED`).

    Attributes:
        bind: returns the op of an instruction; None if its opcode is not registered.
        infer: returns the shape of an instruction that declares none, from its operands' shapes.
    """

    bind: Callable[[Instruction], Op | None]
    infer: Callable[[Instruction], AnyShape]


class Instruction(InstructionText):
    """One instruction: its name, opcode, operands and attributes.

    Attributes:
        name: without ``%``.
        opcode: as in the text, registered or not.
        operands: the operands, earlier instructions of the same computation.
        called_computations: the computations that the attributes name, in text order.
        declared_shape: the result shape in the text, or None.
        computation: the computation of the instruction.
        index: position in the computation.
    Source: XLA ``xla/hlo/ir/hlo_instruction.h``.

    >>> import hlo
    >>> p, n = hlo.parse("ENTRY e { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) }").entry
    >>> n.operands, p.users, n.shape, n.opcode, n.is_root
    ((<parameter 'p' of 'e'>,), (<negate 'n' of 'e'>,), <shape f32[2]>, 'negate', True)
    """

    __slots__ = (
        "_op",
        "_shape",
        "_users",
        "called_computations",
        "computation",
        "declared_shape",
        "end",
        "index",
        "name",
        "opcode",
        "operands",
    )

    def __init__(
        self,
        name: str,
        opcode: str,
        shape: AnyShape | None,
        *,
        computation: Computation,
        index: int,
        start: int,
        end: int,
        operands: tuple[Instruction, ...] = (),
        values: Values | None,
        called_computations: tuple[Computation, ...] = (),
        form: InstructionForm | None = None,
    ) -> None:
        self.name = name
        self.opcode = opcode
        self.declared_shape = shape
        self.operands = operands
        self._literal, self._attributes = values or (None, None)
        self.form = form
        self.called_computations = called_computations
        self.computation = computation
        self.index = index
        self.start = start
        self.end = end
        self._shape = shape
        self._users: tuple[Instruction, ...] | None = None
        self._op: Op | None = None

    @property
    def shape(self) -> AnyShape:
        """The result shape, inferred from the op and its operands if the text omits it.

        Raises:
            HloError: the text omits the shape, and the shape cannot be inferred.
        """
        if self._shape is None:
            methods.infer_missing(self)
        assert self._shape is not None
        return self._shape

    @property
    def users(self) -> tuple[Instruction, ...]:
        """The instructions with this one as an operand, each once, in text order."""
        if self._users is None:
            self.computation._find_users()
        assert self._users is not None
        return self._users

    @property
    def op(self) -> Op | None:
        """The op with its typed attributes; None if the opcode is not registered.

        Raises:
            HloError: an attribute of a registered op is invalid or missing.
        """
        if self._op is None:  # not bound yet, or not registered until now
            self._op = self.module.semantics.bind(self)
        return self._op

    @property
    def sharding(self) -> Sharding | tuple[Sharding, ...] | None:
        """The distribution that the attributes state, of a tuple that of each array; or None.

        Raises:
            HloError: the text is not a sharding, or does not fit the mesh or the shape.
        """
        sharding: Sharding | tuple[Sharding, ...] | None = methods.sharding_of(self)
        return sharding

    @property
    def is_root(self) -> bool:
        """True for the result of the computation."""
        return self.computation.root is self

    @property
    def module(self) -> Module:
        """The module of the instruction."""
        return self.computation.module

    @property
    def source(self) -> OpSource:
        """The operation and the place in a program of which it is made, from the metadata."""
        return op_source(self.attributes.get(METADATA), self.module.tables)

    @property
    def span(self) -> Span:
        """Source location, from the name to the end of the attributes."""
        return Span(self.module.source, self.start, self.end)

    def __str__(self) -> str:
        shape = "" if self.declared_shape is None else f"{_shape_text(self.declared_shape)} "
        operands = ", ".join([f"%{operand.name}" for operand in self.operands])
        inside = operands if self.literal is None else self.literal.printed
        return f"%{self.name} = {shape}{self.opcode}({inside}){attributes_text(self.attributes)}"

    def __repr__(self) -> str:
        return f"<{self.opcode} {self.name!r} of {self.computation.name!r}>"

    def _repr_html_(self) -> str:
        return preformatted_html(str(self))


class Computation(Deferrable):
    """A function of its parameters: a sequence of instructions.

    Attributes:
        name: without ``%``.
        attributes: the text of the attributes after the closing brace, by name.
        module: the module of the computation.
    Source: XLA ``xla/hlo/ir/hlo_computation.h``.

    >>> from hlo.formats.parser import parse
    >>> entry = parse("ENTRY e { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) }").entry
    >>> entry.parameters, entry["n"] is entry.root, [i.name for i in entry.instructions]
    ((<parameter 'p' of 'e'>,), True, ['p', 'n'])
    """

    __slots__ = ("_parameters", "attributes", "end", "module", "name", "start")

    def __init__(self, name: str, module: Module, start: int) -> None:
        super().__init__()
        self.name = name
        self.module = module
        self.start = start
        self.end = start
        self._parameters: tuple[Instruction, ...] | None = None
        self.attributes: Mapping[str, AttributeText] = NO_ATTRIBUTES

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """The instructions in text order; operands precede their users."""
        if self.body is not None:
            self.body.materialise(self)
        return self._instructions

    @property
    def root(self) -> Instruction:
        """The result: the instruction marked ``ROOT``, or the last one."""
        if self.body is not None:
            self.body.materialise(self)
        root: Instruction = self._root
        return root

    @property
    def parameters(self) -> tuple[Instruction, ...]:
        """The parameters in the order of their numbers; raises `HloError` if one has no number."""
        if self._parameters is None:
            parameters = [i for i in self.instructions if i.opcode == "parameter"]
            numbered = [(n, i) for i in parameters if (n := i.parameter_number) is not None]
            self._parameters = tuple([i for _, i in sorted(numbered, key=lambda pair: pair[0])])
        return self._parameters

    def memoised(self, key: Hashable, make: Callable[[], Result]) -> Result:
        """Return the memoised result for `key` of this computation, as `Module.memoised` does."""
        known = self.module.memo_by_computation.setdefault(key, {})
        if self not in known:
            with self.module.lock:
                if self not in known:
                    known[self] = make()
        result: Result = known[self]
        return result

    @property
    def span(self) -> Span:
        """Source location, from the name to the closing brace."""
        return Span(self.module.source, self.start, self.end)

    @property
    def is_entry(self) -> bool:
        """True for the entry computation of the module."""
        return self.module.entry is self

    def __getitem__(self, name: str) -> Instruction:
        """Return the instruction named `name`; raise `KeyError` if there is none."""
        if not isinstance(name, str):
            raise TypeError(f"expected the name of an instruction, got {name!r}: instructions[n]?")
        for instruction in self.instructions:
            if instruction.name == name:
                return instruction
        others = (f"{i.computation.name}/{i.name}" for i in self.module.instructions)
        raise UnknownName(name, "instruction", [*(i.name for i in self.instructions), *others])

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.instructions)

    def _find_users(self) -> None:
        users: dict[Instruction, dict[Instruction, None]] = {i: {} for i in self.instructions}
        for instruction in self.instructions:
            for operand in instruction.operands:
                users[operand][instruction] = None
        for instruction, readers in users.items():
            instruction._users = tuple(readers)

    def __str__(self) -> str:
        lines = [f"  {'ROOT ' if i is self.root else ''}{i}" for i in self.instructions]
        first = f"{'ENTRY ' if self.is_entry else ''}%{self.name} {{"
        return "\n".join([first, *lines, f"}}{attributes_text(self.attributes)}"])

    def __repr__(self) -> str:
        return f"<computation {self.name!r}, {len(self)} instructions>"

    def _repr_html_(self) -> str:
        html: str = methods.styled_computation(self)
        return html


@weakly_referenced
class Module(ModuleHeader, ModuleSearch):
    """A program: its computations, one of which is the entry.

    Its text, ``str(module)``, parses to an equal module.

    Attributes:
        name: the name in the header.
        attributes: the text of the other header entries by key.
        tables: ``FileNames``, ``FunctionNames``, ``FileLocations``, ``StackFrames``: text by line.
        computations: by name, in text order; callees precede their callers.
        entry: the entry computation.
        source: the text of the module.
        semantics: the interpretation of its instructions.
        memo: memoised results of analyses, with the lifetime of the module.
        has_inferred_shapes: True if the text lacks declared shapes (`hlo.infer_shapes`).
        lock: held while a memoised result is computed or deferred instructions are made.
    Source: XLA ``xla/hlo/ir/hlo_module.h``.

    >>> from hlo.formats.parser import parse
    >>> parse("HloModule m ENTRY e { p = f32[2] parameter(0) }")
    <module 'm', 1 computations, 1 instructions>
    """

    __slots__ = (
        "__weakref__",
        "attributes",
        "computations",
        "entry",
        "has_inferred_shapes",
        "lock",
        "memo",
        "memo_by_computation",
        "name",
        "semantics",
        "source",
        "tables",
    )

    def __init__(self, name: str, source: Source, semantics: Semantics) -> None:
        self.name = name
        self.source = source
        self.semantics = semantics
        self.attributes: Mapping[str, AttributeText] = NO_ATTRIBUTES
        self.tables: Mapping[str, Mapping[int, AttributeText]] = MappingProxyType({})
        self.computations: Mapping[str, Computation] = MappingProxyType({})
        self.entry: Computation = _UNSET
        self.memo: dict[Any, Any] = {}
        self.memo_by_computation: dict[Hashable, dict[Computation, Any]] = {}
        self.lock = RLock()
        self.has_inferred_shapes = False

    def memoised(self, key: Hashable, make: Callable[[], Result]) -> Result:
        """Return the memoised result for `key`, computed by `make` on first use.

        Other threads wait: they get the same object, which may compute parts of its value later.
        `make` depends on no other module, so the locks of modules are never nested both ways.
        """
        if key not in self.memo:
            with self.lock:
                if key not in self.memo:
                    self.memo[key] = make()
        result: Result = self.memo[key]
        return result

    @property
    def filename(self) -> str:
        """Name of the file of the text."""
        return self.source.filename

    @property
    def meshes(self) -> Mapping[str, Mesh]:
        """The device meshes that the header declares, by name."""
        meshes: Mapping[str, Mesh] = methods.meshes_of(self)
        return meshes

    @property
    def instructions(self) -> Iterator[Instruction]:
        """All instructions of all computations, in text order."""
        for computation in self.computations.values():
            yield from computation.instructions

    def __eq__(self, other: object) -> bool:
        """Return True if the headers and all instructions are equal, names and layouts included.

        White space, comments, ``%``, signatures of computations and operand shapes are ignored.
        """
        if not isinstance(other, Module):
            return NotImplemented
        return self is other or methods.is_same(self, other)

    __hash__ = object.__hash__

    def __str__(self) -> str:
        header = f"HloModule {self.name}{attributes_text(self.attributes)}"
        tables = [
            "\n".join([name, *(f"{number} {text.printed}" for number, text in lines.items())])
            for name, lines in self.tables.items()
        ]
        return "\n\n".join([header, *tables, *map(str, self.computations.values())]) + "\n"

    def __repr__(self) -> str:
        computations, count = len(self.computations), sum(map(len, self.computations.values()))
        return f"<module {self.name!r}, {computations} computations, {count} instructions>"

    def _repr_html_(self) -> str:
        html: str = methods.module_html(self)
        return html
