"""Checks of the arguments of public functions: errors name the argument and its repair.

`checked` checks a function's arguments by their annotations; frequently called functions check
their arguments themselves, and raise the error that `wrong_argument` returns.

>>> @checked
... def repeated(text: str, count: int = 2) -> str:
...     return text * count
>>> repeated("ab", count="3")
Traceback (most recent call last):
...
TypeError: repeated: `count` must be an integer, not '3'
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, wraps
from inspect import Parameter, signature, unwrap
from operator import index
from reprlib import Repr
from types import NoneType, UnionType
from typing import (
    Any,
    Final,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

P = ParamSpec("P")
R = TypeVar("R")

_REPAIRS: Final[dict[tuple[str, str], str]] = {}
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
_PLURALS: Final[dict[Any, str]] = {int: "integers", str: "strings", bool: "booleans"}
_SHORT: Final = Repr()
_SHORT.maxstring = _SHORT.maxother = 60


def declare_repairs(expected: str, repairs: Mapping[str, str]) -> None:
    """Add expressions that repair a wrong argument.

    Args:
        expected: the name of the class that is expected.
        repairs: for names of other classes, an expression that gives the expected value.

    >>> declare_repairs("Fraction", {"float": "Fraction(str(x))"})
    >>> from fractions import Fraction
    >>> print(wrong_argument("area", "side", Fraction, 0.5))
    area: `side` must be a Fraction, not 0.5; write Fraction(str(x))
    """
    _REPAIRS.update({(expected, given): repair for given, repair in repairs.items()})


def wrong_argument(function: str, name: str, expected: Any, value: object) -> Exception:
    """Return the error for an argument: `ValueError` for another choice, otherwise `TypeError`.

    Args:
        function, name: the names of the function and of its parameter.
        expected: the class, union, sequence or literal that is expected, as an annotation.
        value: the argument.
    """
    repair = next(_repairs(expected, value), None)
    write = f"; write {repair}" if repair else ""
    message = f"{function}: `{name}` must be {_words(expected)}, not {brief(value)}{write}"
    choices = [choice for hint in _alternatives(expected) for choice in _choices(hint)]
    if isinstance(value, str) and any(isinstance(choice, str) for choice in choices):
        return ValueError(message)
    return TypeError(message)


def _repairs(expected: Any, value: object) -> Iterator[str]:
    """Yield the repairs of a value, or of the first wrong element of a sequence."""
    for hint in _alternatives(expected):
        for cls in type(value).__mro__:
            if repair := _REPAIRS.get((getattr(hint, "__name__", ""), cls.__name__)):
                yield repair
        element = _elements(hint)
        if element is not None and isinstance(value, Sequence) and not isinstance(value, str):
            yield from [
                r for each in value if not _fits(each, element) for r in _repairs(element, each)
            ]


def brief(value: object) -> str:
    """Return a short text of a value, on one line.

    >>> brief("x" * 99), brief([1] * 9), brief(print)
    ("'xxxxxxxxxxxxxxxxxxxxxxxxxxx...xxxxxxxxxxxxxxxxxxxxxxxxxxxx'", '[1, 1, 1, 1, 1, 1, ...]', \
'<built-in function print>')
    """
    sizes, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(sizes, tuple) and sizes and dtype is not None:
        return f"an array {dtype}[{','.join(map(str, sizes))}]"
    return " ".join(_SHORT.repr(value).split())


def integer(function: str, name: str, value: object) -> int:
    """Return an argument as `int`; integers of NumPy are accepted.

    Raises:
        TypeError: `value` is not an integer.
    """
    try:
        return index(value)  # type: ignore[arg-type]  # any object
    except TypeError:
        raise wrong_argument(function, name, int, value) from None


def integers(function: str, name: str, values: object) -> tuple[int, ...]:
    """Return a sequence or array of integers as a tuple of `int`.

    Raises:
        TypeError: `values` is not a sequence of integers.
    """
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise wrong_argument(function, name, Sequence[int], values)
    try:
        return tuple([index(value) for value in values])
    except TypeError:  # an element, or an array of rank 0
        raise wrong_argument(function, name, Sequence[int], values) from None


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` with a check of its arguments, by its annotations.

    Classes, unions, literals, callables, mappings, and sequences of these are checked.  An integer
    is what `operator.index` accepts.  Names that are imported for type checking only, such as
    ``ArrayLike``, stand for any value.

    Raises:
        TypeError: the decorated function is called with an argument of the wrong kind, or with an
            unknown option of ``**options: Unpack[…]``.
        ValueError: an argument is not one of the literals.
    """
    of_class = function.__qualname__.removesuffix(".__init__")
    name = of_class.rpartition(".")[2]

    @cache
    def parameters() -> list[tuple[int, Parameter, Any]]:
        names = _Names(unwrap(function).__globals__)
        hints = get_type_hints(function, localns=names)
        listed = signature(function).parameters.values()
        return [(k, p, hints[p.name]) for k, p in enumerate(listed) if p.name in hints]

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for place, parameter, hint in parameters():
            match parameter.kind:
                case Parameter.VAR_POSITIONAL:
                    values: Iterable[object] = args[place:]
                case Parameter.VAR_KEYWORD if get_origin(hint) is Unpack:
                    _check_options(name, get_type_hints(get_args(hint)[0]), kwargs, parameters())
                    continue
                case Parameter.VAR_KEYWORD:
                    continue
                case _ if place < len(args) and parameter.kind != Parameter.KEYWORD_ONLY:
                    values = (args[place],)
                case _ if parameter.name in kwargs:
                    values = (kwargs[parameter.name],)
                case _:
                    continue
            for value in values:
                if not _fits(value, hint):
                    raise wrong_argument(name, parameter.name, hint, value)
        return function(*args, **kwargs)

    return call


def _check_options(
    function: str,
    hints: Mapping[str, Any],
    given: Mapping[str, object],
    parameters: Iterable[tuple[int, Parameter, Any]],
) -> None:
    own = {parameter.name for _, parameter, _ in parameters}
    for name, value in given.items():
        if name in own:
            continue
        if name not in hints:
            near = get_close_matches(name, hints, 1)
            options = ", ".join(hints)
            hint = f"did you mean `{near[0]}`?" if near else f"its options are {options}"
            raise TypeError(f"{function}: there is no option `{name}`; {hint}")
        if not _fits(value, hints[name]):
            raise wrong_argument(function, name, hints[name], value)


class _Names(dict[str, Any]):
    """The names of a module; names that are imported for type checking only are `Any`."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, Any)


# ---------------------------------------------------------------- annotations


def _alternatives(hint: Any) -> Sequence[Any]:
    """The members of a union, or the one annotation."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _choices(hint: Any) -> Sequence[object]:
    return get_args(hint) if get_origin(hint) is Literal else ()


def _elements(hint: Any) -> Any:
    """The annotation of the elements of a sequence; None for other annotations."""
    origin, args = get_origin(hint), get_args(hint)
    is_sequence = isinstance(origin, type) and issubclass(origin, Iterable)
    if not is_sequence or issubclass(origin, Mapping | Iterator) or not args:
        return None
    return args[0] if len(args) == 1 or args[1:] == (...,) else None


def _fits(value: object, hint: Any) -> bool:
    return any(_fits_one(value, each) for each in _alternatives(hint))


def _fits_one(value: object, hint: Any) -> bool:
    element, origin = _elements(hint), get_origin(hint)
    if element is not None:
        return _is_sequence_of(value, element)
    if origin is Literal:
        return any(type(value) is type(c) and value == c for c in _choices(hint))
    cls = hint if origin is None else origin
    if cls in _FITS:
        return _FITS[cls](value)
    if cls is Any or not isinstance(cls, type) or getattr(cls, "_is_protocol", False):
        return True
    return isinstance(value, cls)


def _is_sequence_of(value: object, element: Any) -> bool:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        return False
    if getattr(value, "shape", None) == ():  # an array of rank 0 is not iterable
        return False
    is_lasting = hasattr(value, "__len__")  # an iterator is not consumed here
    return not is_lasting or all(_fits(each, element) for each in value)


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


_FITS: Final[dict[Any, Callable[[object], bool]]] = {
    int: _is_integer,
    bool: _is_boolean,
    float: _is_number,
}


def _words(hint: Any) -> str:
    words = [_words_of_one(each) for each in _alternatives(hint)]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _words_of_one(hint: Any) -> str:
    if get_origin(hint) is Literal:
        *others, last = map(repr, _choices(hint))
        return f"{', '.join(others)} or {last}" if others else last
    element = _elements(hint)
    if element is not None:
        kinds = [_PLURALS.get(each) or f"{_name(each)}s" for each in _alternatives(element)]
        return f"a sequence of {' or '.join(kinds)}"
    if hint in _WORDS:
        return _WORDS[hint]
    name = _name(hint)
    return f"{'an' if name[:1] in 'AEIOU' else 'a'} {name}"


def _name(hint: Any) -> str:
    origin = get_origin(hint)
    cls = hint if origin is None else origin
    return {Callable: "function"}.get(cls, getattr(cls, "__name__", str(cls)))
