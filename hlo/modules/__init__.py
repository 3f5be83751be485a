"""Modules: computations and instructions, their ops, inference of shapes, checks, comparison.

Imports `hlo.text`, `hlo.shapes` and `hlo.ops`. A module is immutable once it is read; results that
are derived from it are stored in it. `module` holds the structure and is independent of how opcodes
are interpreted: `bind` is passed in by the reader. Errors are returned with their source location.
"""
