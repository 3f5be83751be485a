"""Ways to a module: parsing text, reading files and protocol buffers, building one in Python.

Imports all other rooms of `hlo`. The parser accepts every opcode and attribute, resolves names to
objects, and raises `HloError` for text that is not HLO; rules of ops are for `hlo.verify`. What is
built or read prints as text that parses to an equal module.
"""
