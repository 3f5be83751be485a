"""Caches: the bytes that neighbouring tiles share, and the misses of an LRU cache.

`orders` are permutations of tiles; `accesses` and `lines` are the cache lines that each tile
touches; `profile` has their reuse distances, by `closed_forms` or by the trace of `distances`.
"""
