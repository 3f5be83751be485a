"""Presentation: answers as text, JSON and HTML, and tables of ops.

Imports every room except `cli`; contains no analysis.
"""
