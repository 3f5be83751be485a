"""Formulas of programs.  Read `elements` first.

In come modules, whose arrays `numbering` numbers, out go the formulas of their elements: those of
element rules (`element_algebra`), of ops that other ops define (`definitions`, `expansions`), of
loops and conditionals (`loops`).
"""
