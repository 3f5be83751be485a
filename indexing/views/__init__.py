"""Presentation: answers as text, JSON and HTML, summaries of modules, tables of ops.

In come answers; out come texts, records and pages.  Read `map_answers` first.

Imports every room except `cli`; contains no analysis.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
