"""Shapes: element types, arrays, tuples, layouts with tiles, positions in memory, literals.

In come parts of text and numbers; out come shapes.  Read `array_shape` first.

Imports `hlo.text`. A shape is an immutable value that prints as the text it is parsed from; array
shapes are memoised by text. The formulas of layouts work on numbers, NumPy arrays and symbolic
expressions. NumPy is imported on first use.
"""
