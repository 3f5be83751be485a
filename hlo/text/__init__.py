"""Sources, spans, errors with carets, tokens and the text of attribute values.

In comes text; out come tokens with spans, and errors that draw them.  Read `source` first.

Imports no other room. The room is independent of shapes and ops: an attribute value is kept as text
(`syntax.AttributeText`). Positions count characters, and every error has a span. `source` is the
only module that draws carets.
"""
