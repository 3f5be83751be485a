"""Sets of given tile sizes: the elements that each tile needs, by counting.

In come the maps of one instruction and the sizes of its tiles; out comes a set for each operand and
tile, as few classes of tiles that read translates of one set, or as formulas of the tile index.
Read `tiling.tile` first, then `tile_sets.tile_sets`.
"""
