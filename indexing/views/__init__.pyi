# Public names, loaded on first use (`__init__.py`).
from .module_summary import summary as summary
