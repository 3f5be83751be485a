"""Text and places in it: sources, spans, errors with carets, tokens, syntax trees.

Imports no other room. It contains neither shapes nor ops: every text that follows HLO's grammar has
a syntax tree, in which attribute values stay text (`syntax.AttributeText`). Positions count
characters, and every error has a span. `source` is the only module that draws carets.
"""
