"""Tiles: the elements of operands that a tile of an output needs, and the sizes for which a box
holds precisely these elements.
"""
