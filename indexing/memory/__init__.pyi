# What the package gives, loaded on first use (`__init__.py`).
from .read_counts import reads as reads
