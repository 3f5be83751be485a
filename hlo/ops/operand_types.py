"""Element types of operands as an op declares them: names, classes and type variables.

``("pred", "T", "T")`` denotes a pred and two operands of one type; ``("T: floating", "..")`` any
number of operands of one floating-point type.

>>> types_fault(("pred", "T", "T"), [Shape("pred", ()), Shape("f32", ()), Shape("s8", ())]).label
'operand 1 is f32, operand 2 is s8'
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hlo.ops.rules import HOLDS, Fault
from hlo.ops.unify import same_but_precision
from hlo.shapes.shape import ELEMENT_TYPES, Shape

CLASSES: Final[dict[str, frozenset[str]]] = {
    "any": frozenset({"pred", "integral", "unsigned", "floating", "complex"}),
    "numeric": frozenset({"integral", "unsigned", "floating", "complex"}),
    "real": frozenset({"integral", "unsigned", "floating"}),
    "integer": frozenset({"integral", "unsigned"}),
    "signed": frozenset({"integral"}),
    "unsigned": frozenset({"unsigned"}),
    "floating": frozenset({"floating"}),
    "complex": frozenset({"complex"}),
    "inexact": frozenset({"floating", "complex"}),
    "bits": frozenset({"pred", "integral", "unsigned"}),
}
"""Classes of element types, as sets of kinds of `hlo.shapes.shape.ELEMENT_TYPES`."""

REPEATED: Final = ".."


def is_in_class(element_type: str, name: str) -> bool:
    """Return True if an element type has the given name or belongs to the class of that name.

    >>> is_in_class("u8", "integer"), is_in_class("f32", "f32"), is_in_class("f32", "integer")
    (True, True, False)
    """
    return element_type == name or ELEMENT_TYPES[element_type].kind in CLASSES.get(name, ())


def split_type(declared: str) -> tuple[str, str]:
    """Return the type variable, if any, and the class or name of an operand's declared type.

    >>> split_type("T: floating"), split_type("T"), split_type("pred")
    (('T', 'floating'), ('T', 'any'), ('', 'pred'))
    """
    variable, _, name = map(str.strip, declared.partition(":"))
    if name:
        return variable, name
    is_type = variable in CLASSES or variable in ELEMENT_TYPES
    return ("", variable) if is_type else (variable, "any")


def types_sentence(types: Sequence[str]) -> str:
    """Return the constraint on `types` as a sentence.

    >>> types_sentence(("pred", "T: numeric", "T"))
    'the element types of the operands must be pred, T, T with T numeric'
    >>> types_sentence(("T", "T"))
    'the element types of the operands must be equal'
    """
    if _are_equal(types):
        name = split_type(types[0])[1]
        return f"the element types of the operands must be equal{f' and {name}' * (name != 'any')}"
    names, bounds = [], {}
    for declared in types:
        variable, name = ("", declared) if declared == REPEATED else split_type(declared)
        names.append(variable or name)
        if variable and name != "any":
            bounds[variable] = name
    limits = " and ".join(f"{variable} {name}" for variable, name in bounds.items())
    sentence = f"the element types of the operands must be {', '.join(names)}"
    return f"{sentence} with {limits}" if limits else sentence


def _are_equal(types: Sequence[str]) -> bool:
    """Return True if all operands have one type variable, and there are several."""
    variables = {split_type(declared)[0] for declared in types if declared != REPEATED}
    return len(types) > 1 and len(variables) == 1 and "" not in variables


def types_fault(types: Sequence[str], operands: Sequence[Any]) -> Fault:
    """Return the fault of the first operand whose element type is not as declared.

    Floating-point types may be mixed, as everywhere in HLO.
    """
    declared = list(types)
    if declared[-1] == REPEATED:
        declared[-1:] = [declared[-2]] * (len(operands) - len(declared) + 1)
    bound: dict[str, tuple[int, str]] = {}
    for number, (operand, wanted) in enumerate(zip(operands, declared, strict=False)):
        if not isinstance(operand, Shape):
            continue
        given = operand.element_type
        variable, name = split_type(wanted)
        if not is_in_class(given, name):
            return Fault(f"operand {number} is {given}, not {name}", number)
        first, first_type = bound.setdefault(variable or str(number), (number, given))
        if not same_but_precision(given, first_type):
            label = f"operand {first} is {first_type}, operand {number} is {given}"
            return Fault(label, number, f"convert operand {number} to {first_type}")
    return HOLDS
