"""What an op declares: attributes and their text, rules on operands, partial shapes, signatures.

Imports `hlo.text` and `hlo.shapes`. An op is an immutable value that refers to no instruction: the
same value serves all equal instructions. `op.OPS` is the registry; it is empty until a package that
declares ops is imported (`indexing` declares those of HLO).
"""
