"""Tiles of computations: one tiling of the roots, carried to each instruction inside.

In come the roots of a fusion or computation; out comes a box for each instruction, by the maps that
a walk from the roots composes.  Read `tile_analysis.tile_analysis` first.
"""
