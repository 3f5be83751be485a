"""The reader of MLIR's text: modules, functions, regions and ops.

MLIR's own parser does not know the dialects of XLA's emitters, so this one reads the custom syntax
of the ops that `indexing.kernels.forms` lists, and the generic form of all ops.  It takes any other
op for one that is not known: its operands, regions and types are read, and the file goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hlo.arguments import checked
from hlo.text.source import Source
from indexing.kernels.attributes import (
    read_attribute,
    read_dictionary,
    take_type,
)
from indexing.kernels.ir import (
    MlirBlock,
    MlirFunction,
    MlirModule,
    MlirOp,
    MlirRegion,
    MlirType,
    MlirValue,
)
from indexing.kernels.op_reader import OpParts, known_form, make_op, read_by_form
from indexing.kernels.region_ops import WITH_REGIONS, generic_op, unknown_op
from indexing.kernels.scopes import MlirScopes
from indexing.kernels.tokens import MlirTokens
from indexing.kernels.types import UNKNOWN_TYPE

_FUNCTIONS = ("func.func", "xtile.entry_func", "llvm.func")


@checked
def read_module(
    text: str | Source, start: int = 0, end: int | None = None, filename: str = "<mlir>"
) -> MlirModule:
    """Read a module of MLIR, with the definitions of its aliases before it.

    Args:
        text: the text, or a source of which the part from `start` to `end` is the module.
    Raises:
        HloError: the text is no module, with the location.

    >>> module = read_module("module { func.func @f(%a: index) { \\n return \\n } \\n }")
    >>> module.entry, list(module.functions), module.functions["f"].arguments
    (None, ['f'], (%a,))
    """
    source = text if isinstance(text, Source) else Source(text, filename)
    return _MlirReader(MlirTokens(source, start, end)).module()


class _MlirReader:
    def __init__(self, tokens: MlirTokens) -> None:
        self.tokens = tokens
        self.aliases: dict[str, Any] = {}
        self.scopes = MlirScopes()

    def module(self) -> MlirModule:
        tokens = self.tokens
        self._read_aliases()
        if tokens.kind == "string":
            return self._generic_module()
        has_wrapper = tokens.accept("module") or tokens.accept("builtin.module")
        name, attributes = "", {}
        if has_wrapper:
            if tokens.kind == "symbol":
                name = tokens.take()[1:].strip('"')
            if tokens.accept("attributes"):
                attributes = read_dictionary(tokens, self.aliases)
            tokens.expect("{", "before the functions of a module")
        elif tokens.text not in _FUNCTIONS:
            tokens.fail(f"expected `module`, found {tokens.found()}")
        functions: dict[str, MlirFunction] = {}
        others: list[MlirOp] = []
        tokens.skip_newlines()
        while tokens.text != "}" and tokens.kind != "end":
            self._module_item(functions, others)
            tokens.skip_newlines()
        if has_wrapper:
            tokens.expect("}", "after the functions of a module")
            self._skip_location()
        self._read_aliases()
        if tokens.kind != "end":
            tokens.fail(f"expected the end of the module, found {tokens.found()}")
        return MlirModule(tokens.source, name, attributes, functions, tuple(others))

    def _generic_module(self) -> MlirModule:
        """Return a module in generic form: its functions are ops with a region."""
        op = self.op()
        self._read_aliases()
        if self.tokens.kind != "end":
            self.tokens.fail(f"expected the end of the module, found {self.tokens.found()}")
        functions: dict[str, MlirFunction] = {}
        others: list[MlirOp] = []
        for inner in op.regions[0].block.ops if op.regions else ():
            if inner.name in (*_FUNCTIONS, "tt.func") and "sym_name" in inner.attributes:
                block = inner.regions[0].block if inner.regions else None
                arguments = block.arguments if block is not None else ()
                name = inner.attributes["sym_name"]
                functions[name] = MlirFunction(
                    name, inner.name, inner.span, arguments, ({},) * len(arguments), (),
                    inner.attributes, inner.regions[0] if inner.regions else None,
                )  # fmt: skip
            else:
                others.append(inner)
        attributes = op.attributes
        return MlirModule(
            self.tokens.source, str(attributes.get("sym_name", "")), attributes, functions,
            tuple(others),
        )  # fmt: skip

    def _read_aliases(self) -> None:
        tokens = self.tokens
        tokens.skip_newlines()
        while tokens.kind == "alias" and tokens.ahead()[1] == "=":
            name = tokens.take()
            tokens.take()
            if tokens.text == "loc":
                self._skip_location()
                self.aliases[name] = None
            else:
                self.aliases[name] = read_attribute(tokens, self.aliases)
            self._end_of_line()
            tokens.skip_newlines()

    def _skip_location(self) -> None:
        """Go over a location: ``loc(…)``, or a string or ``[unknown]`` as debug dumps print it."""
        tokens = self.tokens
        if tokens.kind == "string" or tokens.text == "loc" or tokens.text == "[":
            opening = {"loc": "(", "[": "["}.get(tokens.text)
            if tokens.take() == "loc":
                tokens.take()
            depth = 1 if opening else 0
            while depth and tokens.kind != "end":
                depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(tokens.take(), 0)

    def _end_of_line(self) -> None:
        self._skip_location()
        tokens = self.tokens
        if tokens.kind not in ("newline", "end") and tokens.text not in ("}", ")"):
            tokens.fail(f"expected the end of the op, found {tokens.found()}")

    def _module_item(self, functions: dict[str, MlirFunction], others: list[MlirOp]) -> None:
        tokens = self.tokens
        if tokens.text in _FUNCTIONS:
            function = self._function()
            functions[function.name] = function
        else:
            self.scopes = MlirScopes()
            others.append(self.op())

    def _function(self) -> MlirFunction:
        tokens, start = self.tokens, self.tokens.start
        op_name = tokens.take()
        self.scopes = MlirScopes()
        while tokens.kind == "word":  # `private`, `internal`
            tokens.take()
        name = tokens.expect_kind("symbol", "the name of a function")[1:].strip('"')
        tokens.expect("(", "before the arguments")
        arguments: list[MlirValue] = []
        argument_attributes: list[Mapping[str, Any]] = []
        types: list[MlirType] = []
        for _ in tokens.items(")", "an argument"):
            if tokens.accept("."):  # a variadic declaration
                tokens.expect(".")
                tokens.expect(".")
                continue
            if tokens.kind == "value":
                argument = tokens.take()[1:]
                tokens.expect(":", "after the name of an argument")
                types.append(take_type(tokens))
                arguments.append(self.scopes.define(argument, types[-1]))
            else:
                types.append(take_type(tokens))
            inner = read_dictionary(tokens, self.aliases) if tokens.text == "{" else {}
            argument_attributes.append(inner)
            self._skip_location()
        results = self._function_results()
        attributes = {}
        if tokens.accept("attributes"):
            attributes = read_dictionary(tokens, self.aliases)
        end = tokens.last_end
        body = self.region(()) if tokens.text == "{" else None
        self.scopes.close()
        self._end_of_line()
        return MlirFunction(
            name, op_name, tokens.source.span(start, end), tuple(arguments),
            tuple(argument_attributes), results, attributes, body,
        )  # fmt: skip

    def _function_results(self) -> tuple[MlirType, ...]:
        tokens = self.tokens
        if not tokens.accept("->"):
            return ()
        if tokens.text != "(":
            return (take_type(tokens),)
        tokens.take()
        types: list[MlirType] = []
        for _ in tokens.items(")", "a type"):
            types.append(take_type(tokens))
            if tokens.text == "{":
                read_dictionary(tokens, self.aliases)
        return tuple(types)

    def region(
        self,
        arguments: tuple[MlirValue, ...],
        groups: Mapping[str, tuple[MlirValue, ...]] | None = None,
    ) -> MlirRegion:
        """Read a region from its opening brace on; its first block has these arguments."""
        tokens = self.tokens
        tokens.expect("{", "before a region")
        self.scopes.levels.append({})
        for value in arguments:
            self.scopes.levels[-1][value.name] = value
        blocks: list[MlirBlock] = []
        tokens.skip_newlines()
        label, groups = "", groups or {}
        while True:
            if tokens.kind == "block":
                label, arguments = self._block_header()
            ops: list[MlirOp] = []
            tokens.skip_newlines()
            while tokens.text != "}" and tokens.kind not in ("block", "end"):
                ops.append(self.op())
                tokens.skip_newlines()
            blocks.append(MlirBlock(arguments, tuple(ops), label, groups))
            groups = {}
            if tokens.kind != "block":
                break
        tokens.expect("}", "after a region")
        self.scopes.levels.pop()
        return MlirRegion(tuple(blocks))

    def _block_header(self) -> tuple[str, tuple[MlirValue, ...]]:
        tokens = self.tokens
        label = tokens.take()[1:]
        arguments: list[MlirValue] = []
        if tokens.accept("("):
            for _ in tokens.items(")", "an argument"):
                name = tokens.expect_kind("value", "an argument of a block")[1:]
                tokens.expect(":", "after the name of an argument")
                arguments.append(self.scopes.define(name, take_type(tokens)))
                self._skip_location()
        tokens.expect(":", "after the header of a block")
        return label, tuple(arguments)

    def op(self) -> MlirOp:
        """Read an op with its regions."""
        tokens, start = self.tokens, self.tokens.start
        names = self._result_names()
        parts = OpParts(tokens, self.scopes, self.aliases)
        is_generic = tokens.kind == "string"
        if not is_generic and tokens.kind != "word":
            tokens.fail(f"expected an op, found {tokens.found()}")
        name = tokens.take().strip('"')
        form = known_form(name)
        if is_generic:
            types = generic_op(self, parts)
        elif name in WITH_REGIONS and not self._is_other_syntax(name):
            types = WITH_REGIONS[name](self, parts)
        elif form is not None:
            types = read_by_form(parts, form)
        else:
            types = unknown_op(self, parts, len(names))
        end = tokens.last_end
        if parts.regions:
            end = tokens.source.text.find("\n", start)
            end = end if end >= 0 else tokens.last_end
        self._end_of_line()
        if len(types) != len(names) and (types or parts.is_known) and names:
            tokens.fail(f"`{name}` has {len(types)} results, but {len(names)} names")
        types = types if len(types) == len(names) else [UNKNOWN_TYPE] * len(names)
        results = [self.scopes.define(n, t) for n, t in zip(names, types, strict=True)]
        return make_op(parts, name, tokens.source, start, end, results)

    def _is_other_syntax(self, name: str) -> bool:
        """Return True for a syntax of an op that has no reader."""
        return (
            name == "stablehlo.reduce"
            and "applies"
            not in self.tokens.source.text[
                self.tokens.start : self.tokens.source.text.find("\n", self.tokens.start)
            ]
        )

    def _result_names(self) -> list[str]:
        tokens = self.tokens
        names: list[str] = []
        while tokens.kind == "value":
            name = tokens.take()[1:]
            if tokens.accept(":"):
                names += [f"{name}#{k}" for k in range(tokens.integer("the number of results"))]
            else:
                names.append(name)
            if not tokens.accept(","):
                tokens.expect("=", "or `,` after the name of a result")
                break
        return names
