# Public names, loaded on first use (`__init__.py`).
from .drawing import Drawing as Drawing
