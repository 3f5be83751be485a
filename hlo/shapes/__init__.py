"""Shapes: element types, arrays, tuples, layouts with tiles, positions in memory, literals.

Imports `hlo.text`. Shapes are immutable values that are read from text and print as the same text;
equal texts of arrays give one object. The formulas of layouts hold for numbers, for NumPy arrays
and for expressions alike. NumPy is imported on first use.
"""
