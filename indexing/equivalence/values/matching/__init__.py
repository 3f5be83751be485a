"""Comparison of two terms.  Read `matching` first.

In come the terms of one output before and after, out goes whether they are equal, by structure and
by cases (`case_matching`), or the smallest pair of subterms that is left (`residuals`).
"""
