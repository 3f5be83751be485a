# Public names, loaded on first use (`__init__.py`).
from .collectives import collective_costs as collective_costs
