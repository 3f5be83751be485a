"""Shardings: meshes of devices, and how the elements of an array are distributed over them.

In come the notations of HLO and Shardy; out come distributions of elements.  Read `mesh` first.

Imports `hlo.text` and `hlo.shapes`. A sharding is an immutable value, whatever notation it was
written in.
"""
