"""Constraints on tile sizes ``ts_0, ts_1, …``: where a box holds precisely what a tile needs.

In come conditions on expressions of tile sizes; out come trees of them, the sizes that they
refuse, and their texts.  Read `size_constraints.condition` first.
"""
