"""Loop nests made from maps: data, Python to read, and the way to the NumPy program."""
