# Public names, loaded on first use (`__init__.py`).
from .build import loop_nest as loop_nest
