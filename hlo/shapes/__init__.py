"""Shapes: element types, arrays, tuples, layouts with tiles, where elements lie, literals.

Imports `hlo.text`.  Values that are read from text and print as the same text.
"""
