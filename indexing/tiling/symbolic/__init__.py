"""Symbolic tiles: what a tile of any size needs, without counting elements.

In comes one map; out comes one strided box of formulas of the tile index and the tile sizes, with
constraints on the sizes.  Read `symbolic_tiles.symbolic_tile` first, then `result_values.sides_of`.
"""
