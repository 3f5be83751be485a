"""Modules: computations, instructions, their attributes bound to ops, inference and checks.

Imports `hlo.text`, `hlo.shapes` and `hlo.ops`.  A module is immutable once it is read; what is
derived from it is remembered in it.
"""
