"""Kernels of Mosaic in custom calls of XLA:TPU: read from their bytecode, with the maps of reads.

Read `call_maps` first.
"""
