"""Element formulas of two programs in one table: equal formulas are one term.

`numbering` gives each array a number, `elements` the formula of one element of an array,
`compare_values` the proof that two programs compute the same formulas, or the smallest pair of
subterms that is left.
"""
