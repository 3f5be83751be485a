"""Regions: sets of elements of one array, as boxes where possible.

* `boxes`: products of arithmetic progressions, and exact operations on sets of them;
* `box_unions`: unions of sets of disjoint boxes;
* `images`: the image of a map as boxes;
* `pieces`, `region`: `Region`, a union of boxes and of images that are no boxes;
* `selection`: maps at points, on arrays of points and on slices;
* `answers`: the regions of all operands.
"""
