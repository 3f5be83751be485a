"""Shardings: meshes of devices, and how the elements of an array are distributed over them.

Imports `hlo.text` and `hlo.shapes`. A sharding is an immutable value, whatever notation it was
written in.
"""
