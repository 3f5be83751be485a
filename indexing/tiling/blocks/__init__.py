"""Blocks of one dimension of an operand: which of them each tile reads, in full, in part or not.

In come a tiled operand, a dimension and the size of a block; out come a state for each tile and
block, and the first and the last block of each tile as a map of its index.  Read
`tiled_blocks.TiledBlocks` first.
"""
