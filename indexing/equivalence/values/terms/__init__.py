"""Terms of formulas, hash-consed: equal formulas are one object.  Read `terms` first.

In come functions and arguments, out go terms, among them choices in a fixed order
(`decision_diagrams`) and closed arrays in a canonical form (`closed_terms`).
"""
