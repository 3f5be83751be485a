"""Element formulas of two programs in one table: equal formulas are one term.

In come two modules, out goes a proof that they compute the same formulas, or the smallest pair of
subterms that is left (`engine`, to be read first).  `terms` holds the formulas, `laws` makes equal
ones one term, `folds` are reductions, `formulas` makes those of programs, `matching` compares them.
"""
