"""Comparison of a program with its partition among devices, by global index."""
