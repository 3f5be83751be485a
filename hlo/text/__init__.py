"""Text and places in it: sources, spans, errors with carets, tokens, syntax trees.

Imports no other room.  Knows neither shapes nor ops: any text that follows HLO's grammar has a
syntax tree.  `source` is the only module that draws carets.
"""
