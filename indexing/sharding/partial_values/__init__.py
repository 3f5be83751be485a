"""Partial values: the states of inputs from which devices compute parts of a result.

In come a subject and its split choices; out come the states of its inputs, with the laws that prove
that the parts combine to the result.
Read `requirements.PartialValues` first, then `laws.laws`.
"""
