"""What a person sees: text of answers, HTML, tables of ops.

Imports every room but `cli`; holds no analysis of its own.
"""
