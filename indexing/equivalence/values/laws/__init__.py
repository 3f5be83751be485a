"""Laws of values, and the algebra that makes terms by them.  Read `algebra` first.

In come a function and its argument terms, out goes the term that all equal formulas share.  Laws
that are not exact are applied later (`normalising`), and each term keeps the laws that it used.
"""
