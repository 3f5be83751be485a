"""Modules, computations and instructions: their ops, shape inference, checks and comparison.

In come parsed instructions; out come modules that can be searched.  Read `module` first.

Imports `hlo.text`, `hlo.shapes` and `hlo.ops`. A module is immutable after parsing and memoises
derived results. `module` defines the structure independently of the registered ops; the parser
passes the interpretation of opcodes (`instruction_checks`). Errors have a source location.
"""
