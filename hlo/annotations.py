"""Annotations of parameters, evaluated: which values fit them, and their description in words.

Classes, unions, literals, callables, mappings and sequences are known; other annotations fit any
value.  An integer is what `operator.index` accepts.  A name that is imported for type checking only
fits any value.

>>> hint = Sequence[int] | None
>>> fits([1, 2], hint), fits([1, "2"], hint), words(hint)
(True, False, 'a sequence of integers or None')
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from inspect import unwrap
from operator import index
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

Predicate: TypeAlias = Callable[[object], bool]

_WORDS: Final[dict[Any, str]] = {
    int: "an integer",
    str: "a string",
    bytes: "bytes",
    bool: "True or False",
    float: "a number",
    slice: "a slice",
    type(...): "...",
    NoneType: "None",
}
_PLURALS: Final[dict[str, str]] = {
    "int": "integers",
    "str": "strings",
    "bool": "booleans",
    "Expr": "expressions",
    "Variable": "variables",
    "_Anything": "values",
    "Any": "values",
}


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function, evaluated."""
    return get_type_hints(function, localns=_Names(unwrap(function).__globals__))


class _Names(dict[str, Any]):
    """The names of a module; other names, of imports for type checking only, are `_Anything`."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, _Anything)


class _Anything:
    """The annotation for a name that is imported for type checking only: any value."""

    def __class_getitem__(cls, item: object) -> type[_Anything]:
        return cls


def alternatives(hint: Any) -> Sequence[Any]:
    """The members of a union, or the one annotation."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def choices(hint: Any) -> Sequence[object]:
    return get_args(hint) if get_origin(hint) is Literal else ()


def element_of(hint: Any) -> Any:
    """The annotation of the elements of a sequence; None for other annotations."""
    origin, args = get_origin(hint), get_args(hint)
    is_sequence = isinstance(origin, type) and issubclass(origin, Iterable)
    if not is_sequence or issubclass(origin, Mapping | Iterator) or not args:
        return None
    return args[0] if len(args) == 1 or args[1:] == (...,) else None


def _key_and_value(hint: Any) -> tuple[Any, ...]:
    """The annotations of the keys and values of a mapping; () for other annotations."""
    origin, args = get_origin(hint), get_args(hint)
    is_mapping = isinstance(origin, type) and issubclass(origin, Mapping)
    return args if is_mapping and len(args) == 2 else ()


def fits(value: object, hint: Any) -> bool:
    """Return True if a value fits an annotation."""
    return predicate(hint)(value)


def predicate(hint: Any) -> Predicate:
    """Return the test of values for an annotation.

    >>> is_sizes = predicate(Sequence[int])
    >>> is_sizes([2, 3]), is_sizes((2.5,)), is_sizes("23")
    (True, False, False)
    """
    tests = [_predicate_of_one(each) for each in alternatives(hint)]
    if len(tests) == 1:
        return tests[0]
    return lambda value: any(test(value) for test in tests)


def own_classes(hint: Any) -> frozenset[type]:
    """Return classes whose own instances, not those of subclasses, fit an annotation.

    The exact class of an argument is quicker to test than its `predicate`.

    >>> own_classes(int | None) == {int, NoneType}, own_classes(Sequence[int])
    (True, frozenset())
    """
    classes = [each for each in alternatives(hint) if isinstance(each, type)]
    return frozenset([cls for cls in classes if get_origin(cls) is None])


def _predicate_of_one(hint: Any) -> Predicate:
    """The test for an annotation that is not a union."""
    element, origin = element_of(hint), get_origin(hint)
    if element is not None:
        fits_element, is_ordered = predicate(element), issubclass(origin, Sequence | tuple)
        return lambda value: (
            not (is_ordered and isinstance(value, Mapping)) and _contains_only(value, fits_element)
        )
    if pair := _key_and_value(hint):
        fits_key, fits_value = map(predicate, pair)
        return lambda value: (
            isinstance(value, Mapping)
            and all(fits_key(k) and fits_value(v) for k, v in value.items())
        )
    if origin is Literal:
        allowed = frozenset([(type(choice), choice) for choice in choices(hint)])
        return lambda value: _is_choice(value, allowed)
    cls = hint if origin is None else origin
    if cls in _FITS:
        return _FITS[cls]
    if cls in (Any, _Anything) or not isinstance(cls, type) or getattr(cls, "_is_protocol", False):
        return any_value
    return lambda value: isinstance(value, cls)


def any_value(value: object) -> bool:
    """Return True: the test of a parameter without annotation."""
    return True


def _is_choice(value: object, allowed: Collection[tuple[type, object]]) -> bool:
    """True if a value is one of the choices, and of the same type."""
    return any(type(value) is cls and value == choice for cls, choice in allowed)


def _contains_only(value: object, fits_element: Predicate) -> bool:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return False
    if getattr(value, "shape", None) == ():  # an array of rank 0 is not iterable
        return False
    is_lasting = hasattr(value, "__len__")  # an iterator is not consumed here
    return not is_lasting or all(map(fits_element, value))


def _is_integer(value: object) -> bool:
    try:
        index(value)  # type: ignore[arg-type]  # any object
    except TypeError:
        return False
    return True


def _is_boolean(value: object) -> bool:
    return type(value).__name__ in ("bool", "bool_") or (_is_integer(value) and value in (0, 1))


def _is_number(value: object) -> bool:
    return isinstance(value, float) or _is_integer(value)


_FITS: Final[dict[Any, Predicate]] = {
    int: _is_integer,
    bool: _is_boolean,
    float: _is_number,
}


def words(hint: Any) -> str:
    return _join_with_or([_words_of_one(each) for each in alternatives(hint)])


def _plural(hint: Any) -> str:
    kinds = [_PLURALS.get(_hint_name(each), f"{_hint_name(each)}s") for each in alternatives(hint)]
    return _join_with_or(kinds)


def _join_with_or(words: Sequence[str]) -> str:
    """Words as a list with "or"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _words_of_one(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return _join_with_or(list(map(repr, choices(hint))))
    element = element_of(hint)
    if element is not None:
        return f"a sequence of {_plural(element)}"
    if pair := _key_and_value(hint):
        return f"a mapping of {_plural(pair[0])} to {_plural(pair[1])}"
    if hint in _WORDS:
        return _WORDS[hint]
    name = _hint_name(hint)
    return f"{'an' if name[:1] in 'AEIOU' else 'a'} {name}"


def _hint_name(hint: Any) -> str:
    origin = get_origin(hint)
    cls = hint if origin is None else origin
    return {Callable: "function"}.get(cls, getattr(cls, "__name__", str(cls)))
