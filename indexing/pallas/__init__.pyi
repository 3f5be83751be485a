# Public names, loaded on first use (`__init__.py`).
from .checking import check as check
from .report import BlockReport as BlockReport
from .report import CallReport as CallReport
from .report import PallasReport as PallasReport
