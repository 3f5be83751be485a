"""Ways to a module: parsing text, reading files and protobufs, building one in Python.

Imports every other room of `hlo`.
"""
