"""Declarations of ops: attributes, constraints on operands, partial shapes and signatures.

In come classes that declare ops; out come their registry and checks.  Read `op` first.

Imports `hlo.text` and `hlo.shapes`. An op is an immutable value without a reference to an
instruction, so equal instructions share one op. `op.OPS` is the registry. It is empty until a
package that registers ops is imported (`indexing` registers those of HLO).
"""
