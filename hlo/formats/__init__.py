"""Sources of modules: the parser of HLO text, files, protobufs, StableHLO; a builder for Python.

In come files; out come modules.  Read `parser` first.

Imports all other rooms of `hlo`. The parser accepts every opcode and attribute, resolves names to
objects, and raises `HloError` for invalid text; `hlo.verify` checks the rules of ops. Every module
prints as text that parses to an equal module.
"""
