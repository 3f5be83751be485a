"""Loop nests as NumPy programs: strided views, index arrays, reductions, matrix products."""
