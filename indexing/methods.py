"""Implementations of the methods of values such as `IndexingMap`, loaded on their first call.

A value does not import the modules that implement its methods: it calls functions of this module by
name.  `methods.pyi` lists each name with its module, for this module and for type checkers.
"""

from typing import Final

from hlo.lazy import homes_of, loader

HOMES: Final = homes_of("indexing", __file__)
"""The module of each name."""

__getattr__ = loader(__name__, HOMES)
