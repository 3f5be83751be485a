"""What an op declares: attributes and their text, rules on operands, partial shapes, signatures.

Imports `hlo.text` and `hlo.shapes`.  `OPS` is the registry; the ops themselves are declared by
other packages.
"""
