"""Names of the parameters of a module: those of a function's arguments.

>>> import hlo
>>> module = hlo.parse("ENTRY e { Arg_0.1 = f32[] parameter(0)  ROOT x = f32[] negate(Arg_0.1) }")
>>> print(with_parameter_names(module, ["x"]).entry)
ENTRY %e {
  %x = f32[] parameter(0)
  ROOT %x.1 = f32[] negate(%x)
}
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from typing import Final

from hlo.formats.parser import parse
from hlo.modules.module import Instruction, Module
from hlo.text.syntax import AttributeText

_KEY: Final = re.compile(r"""\[(?:<flat index (\d+)>|'([^']*)'|"([^"]*)"|([^]]*))\]""")
_INVALID: Final = re.compile(r"[^\w.\-]", re.ASCII)
_REFERENCE: Final = re.compile(r"[\w.\-]+", re.ASCII)
_PREDECESSORS: Final = "control-predecessors"


def with_parameter_names(module: Module, names: Sequence[str]) -> Module:
    """Return the module with the entry's parameters named `names`, in the order of their numbers.

    Names become unique in the whole module: an earlier parameter, and any parameter before another
    instruction, has priority; the others get a suffix such as ``.1``.

    Args:
        module: stays unchanged.
        names: valid names, for example of `parameter_names`.
    Raises:
        ValueError: there are not as many names as parameters.
    """
    module = parse(str(module), module.filename)  # a module of our own, to be changed
    new_names = _new_names(module, names)
    if not new_names:
        return module
    for computation in module.computations.values():
        local = {i.name: new_names[i] for i in computation if i in new_names}
        for instruction in computation if local else ():
            predecessors = instruction.attributes.get(_PREDECESSORS)
            if predecessors is not None:
                text = _REFERENCE.sub(lambda m: local.get(m[0], m[0]), predecessors.text)  # noqa: B023
                changed = {_PREDECESSORS: AttributeText.of(text)}
                instruction.attributes = {**instruction.attributes, **changed}
    for instruction, name in new_names.items():
        instruction.name = name
    return parse(str(module), module.filename)  # the text and its spans have the new names


def named_module(text: str, paths: Sequence[str], label: str, is_flat: bool = False) -> Module:
    """Return the module of a JAX function, whose parameters have the names of the arguments.

    Tokens and hoisted constants, which are parameters before the arguments, keep XLA's names.

    Args:
        text: the text of the module.
        paths: the arguments, as JAX writes them; if empty, the ``op_name`` of each parameter is
            the argument.
        label: stands where other modules have a file.
        is_flat: the text names the arguments ``args[0]``, ``args[1]``, ...
    """
    if is_flat:
        for number, path in enumerate(paths):
            text = text.replace(f'op_name="args[{number}]"', f'op_name="{_escape(path)}"')
    module = parse(text, label)
    parameters = module.entry.parameters
    own = [parameter.name for parameter in parameters]
    if paths and len(parameters) >= len(paths):  # else one tuple of all arguments
        before = len(parameters) - len(paths)
        own[before:] = parameter_names(paths)
    elif not paths:
        written = [parameter.source.op_name for parameter in parameters]
        own = [parameter_names([w])[0] if w else o for w, o in zip(written, own, strict=True)]
    return with_parameter_names(module, own)


def _escape(text: str) -> str:
    """Return the contents of a string of HLO."""
    return "".join(f"\\{c}" if c in "\"'\\" else c for c in text)


def _new_names(module: Module, names: Sequence[str]) -> Mapping[Instruction, str]:
    """Return the instructions to rename: parameters, and instructions that have their names."""
    parameters = module.entry.parameters
    if len(parameters) != len(names):
        message = f"the module has {len(parameters)} parameters, but {len(names)} names are given"
        raise ValueError(message)
    chosen: dict[str, Instruction] = {}
    for parameter, name in zip(parameters, names, strict=True):
        chosen[unused_name(name, chosen)] = parameter
    renamed = {parameter: name for name, parameter in chosen.items() if parameter.name != name}
    taken = set(chosen) | {i.name for i in module.instructions}
    for instruction in module.instructions:
        if chosen.get(instruction.name, instruction) is not instruction:
            if instruction not in renamed:
                renamed[instruction] = unused_name(instruction.name, taken)
                taken.add(renamed[instruction])
    return renamed


def unused_name(name: str, taken: Collection[str]) -> str:
    """Return `name`, with a suffix if it is among `taken`.

    >>> unused_name("x", ["y"]), unused_name("x", ["x", "x.1"])
    ('x', 'x.2')
    """
    if name not in taken:
        return name
    return next(text for n in count(1) if (text := f"{name}.{n}") not in taken)


def parameter_names(paths: Sequence[str]) -> list[str]:
    """Return valid names of HLO for arguments, given as JAX writes them.

    >>> parameter_names(["x", "params['wq'][0]", "state.count", "rest[0]['a b']", "größe"])
    ['x', 'params.wq.0', 'state.count', 'rest.0.a_b', 'gr__e']
    """
    return [".".join(_parts(path)) for path in paths]


def _parts(path: str) -> Iterator[str]:
    """Yield the valid parts of the path of an argument.  Only keys may begin with a digit."""
    root, bracket, keys = path.partition("[")
    first = _INVALID.sub("_", root)
    yield first if first[:1].isalpha() or first[:1] == "_" else f"_{first}"
    for key in re.split(_KEY, bracket + keys) if bracket else ():
        if key:
            yield _INVALID.sub("_", key.removeprefix("."))
