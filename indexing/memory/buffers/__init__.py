"""Buffers: where the arrays of a program are in memory, for how long, and with how much padding.

In come modules, with or without XLA's buffer assignment; out come buffers with their spaces, sizes
and lives, and the peak of each memory space.  Read `profile` first.
"""
