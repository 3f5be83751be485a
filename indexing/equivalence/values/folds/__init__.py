"""Folds: unordered reductions of a formula over range variables.  Read `folds` first.

In come a body, ranges and guards, out goes a closed term in a canonical form; sums of folds over
disjoint sets are folds over the union (`fold_unions`).
"""
