# Public names, loaded on first use (`__init__.py`).
from .counting import read_counts as read_counts
