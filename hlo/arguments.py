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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, wraps
from inspect import Parameter, signature
from operator import index
from reprlib import Repr
from typing import Any, Final, ParamSpec, TypeVar, Unpack, get_args, get_origin, get_type_hints

from hlo.annotations import (
    alternatives,
    choices,
    element_of,
    fits,
    hints_of,
    own_classes,
    predicate,
    words,
)
from hlo.argument_tests import ArgumentTest, ArgumentTests
from hlo.repairs import repair

P = ParamSpec("P")
R = TypeVar("R")

_BY_NAME: Final = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_SHORT: Final = Repr()
_SHORT.maxstring = _SHORT.maxother = 60


def wrong_argument(function: str, name: str, expected: Any, value: object) -> Exception:
    """Return the error for an argument: `ValueError` for another choice, otherwise `TypeError`.

    Args:
        function, name: the names of the function and of its parameter.
        expected: the class, union, sequence or literal that is expected, as an annotation.
        value: the argument.
    """
    repair = next(_repairs(expected, value), None)
    write = f"; write {repair}" if repair else ""
    message = f"{function}: `{name}` must be {words(expected)}, not {brief(value)}{write}"
    allowed = [choice for hint in alternatives(expected) for choice in choices(hint)]
    if isinstance(value, str) and any(isinstance(choice, str) for choice in allowed):
        return ValueError(message)
    return TypeError(message)


def _repairs(expected: Any, value: object) -> Iterator[str]:
    """Yield the repairs of a value, or of the first wrong element of a sequence."""
    for hint in alternatives(expected):
        for cls in type(value).__mro__:
            if expression := repair(getattr(hint, "__name__", ""), cls.__name__):
                yield expression
        element = element_of(hint)
        if element is not None and isinstance(value, Sequence) and not isinstance(value, str):
            yield from [
                r for each in value if not fits(each, element) for r in _repairs(element, each)
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


def brief_text(text: str, limit: int = 160) -> str:
    """Return a text on one line, shortened in the middle if it is longer than `limit`.

    >>> brief_text("d0 * 2 + d1, domain: d0 in [0, 9]", 20)
    'd0 * 2 + …in [0, 9]'
    """
    line = " ".join(text.split())
    half = (limit - 1) // 2
    return line if len(line) <= limit else f"{line[:half]}…{line[-half:]}"


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


def check_argument(function: Callable[..., Any], name: str, value: object) -> None:
    """Raise the error for an argument of a function or constructor if it is of the wrong kind."""
    hint = hints_of(function)[name]
    if not fits(value, hint):
        raise wrong_argument(_callable_name(function), name, hint, value)


def check_call(function: Callable[..., Any], *args: object, **kwargs: object) -> None:
    """Raise the error for the first argument of a call that is of the wrong kind, if there is one.

    For functions that are called very often: they call this once something has failed.
    """
    _parameters_of(function)().check(args, kwargs)


def checked_on_failure(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function`, whose arguments are checked as by `checked` if it fails.

    For functions that are called often: the check costs nothing while they succeed.
    """
    parameters = _parameters_of(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (AttributeError, TypeError, ValueError):
            parameters().check(args, kwargs)
            raise

    return call


def checked_constructor(cls: type[R]) -> type[R]:
    """Return the class with a constructor that is `checked`: a class decorator."""
    cls.__init__ = checked(cls.__init__)  # type: ignore[method-assign]  # decorated
    return cls


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
    parameters = _parameters_of(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        expected = parameters()
        if not expected.fit(args, kwargs):
            expected.check(args, kwargs)
        return function(*args, **kwargs)

    return call


def _parameters_of(function: Callable[..., Any]) -> Callable[[], _Parameters]:
    """Return a function that returns the parameters of `function`, computed on its first call."""
    return cache(lambda: _Parameters(function))


class _Parameters:
    """The parameters of a function, with the annotations that its arguments must fit.

    Annotations are evaluated on the first call of the function, once.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = _callable_name(function)
        self._parameters = list(signature(function).parameters.values())
        self._hints = hints_of(function)
        self._options: Mapping[str, Any] = {}
        for parameter in self._parameters:
            hint = self._hints.get(parameter.name)
            if parameter.kind == Parameter.VAR_KEYWORD and get_origin(hint) is Unpack:
                self._options = get_type_hints(get_args(hint)[0])
        positional = [
            _test(self._hints.get(parameter.name, Any))
            for parameter in self._parameters
            if parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        ]
        named = {
            **{name: _test(hint) for name, hint in self._options.items()},
            **{
                p.name: _test(self._hints.get(p.name, Any))
                for p in self._parameters
                if p.kind in _BY_NAME
            },
        }
        self.fit = ArgumentTests(positional, named).fit  # if not, `check` decides

    def check(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        """Raise the error for the first argument that is of the wrong kind, if there is one."""
        for place, parameter in enumerate(self._parameters):
            name, kind = parameter.name, parameter.kind
            if name not in self._hints:
                continue
            if kind == Parameter.VAR_KEYWORD:
                self._check_options(kwargs)
                continue
            values: Iterable[object] = ()
            if kind == Parameter.VAR_POSITIONAL:
                values = args[place:]
            elif place < len(args) and kind != Parameter.KEYWORD_ONLY:
                values = (args[place],)
            elif name in kwargs:
                values = (kwargs[name],)
            for value in values:
                if not fits(value, self._hints[name]):
                    raise wrong_argument(self._function, name, self._hints[name], value)

    def _check_options(self, given: Mapping[str, object]) -> None:
        own = {parameter.name for parameter in self._parameters}
        for name, value in given.items():
            if name in own or not self._options:
                continue
            if name not in self._options:
                near = get_close_matches(name, self._options, 1)
                options = ", ".join(self._options)
                hint = f"did you mean `{near[0]}`?" if near else f"its options are {options}"
                raise TypeError(f"{self._function}: there is no option `{name}`; {hint}")
            if not fits(value, self._options[name]):
                raise wrong_argument(self._function, name, self._options[name], value)


def _test(hint: Any) -> ArgumentTest:
    return own_classes(hint), predicate(hint)


def _callable_name(function: Callable[..., Any]) -> str:
    """The name of a function, or of the class whose constructor it is."""
    return function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
