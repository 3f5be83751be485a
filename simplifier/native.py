"""Options of mypyc for single classes, which the interpreter ignores.

``free_list_len=1``: the memory of the last freed instance serves the next one.  The option
``acyclic`` is no choice for expressions: mypyc 2.4 defers the deallocation of deeply nested objects
like that of objects which the garbage collector tracks, and overwrites memory in front of others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

Class = TypeVar("Class", bound=type)

if TYPE_CHECKING:  # mypyc looks for this name; users need not install the package
    from mypy_extensions import mypyc_attr as mypyc_attr
else:

    def mypyc_attr(**_options: object) -> Callable[[Class], Class]:
        """Return a decorator that returns the class itself."""
        return lambda cls: cls


def is_native(cls: type) -> bool:
    """Return True for a class that mypyc has compiled.

    Compiled modules set its attributes directly, whatever ``cls.__setattr__`` refuses.

    >>> from simplifier.constraints import Constraint
    >>> from simplifier import constraints
    >>> is_native(Constraint) == (not constraints.__file__.endswith(".py"))
    True
    """
    return hasattr(cls, "__mypyc_attrs__")
