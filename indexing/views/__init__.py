"""Presentation: answers as text, JSON and HTML, summaries of modules, tables of ops.

Imports every room except `cli`; contains no analysis.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
