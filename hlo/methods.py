"""Implementations of the methods of `Module`, loaded on their first call (`hlo.lazy`).

`methods.pyi` lists each name with its module, for this module and for type checkers.
"""

from typing import Final

from hlo.lazy import homes_of, loader

HOMES: Final = homes_of("hlo", __file__)
"""The module of each name."""

__getattr__ = loader(__name__, HOMES)
