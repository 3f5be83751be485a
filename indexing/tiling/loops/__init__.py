"""Tilings with loops: what each block loads, step by step, and what it holds.

In come the tiles of all arrays of a fusion or computation (`computations.tile_graph`) and sizes of
tiles and of steps; out come the phases of a block, the traffic, and the residency.
Read `loop_tiling.LoopTiling` first, then `nests` and `step_sets`.
"""
