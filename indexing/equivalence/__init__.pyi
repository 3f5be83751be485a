# Public names, loaded on first use (`__init__.py`).
from .compare import equivalent as equivalent
from .passes import PassResult as PassResult
from .passes import passes as passes
from .verdicts import Differs as Differs
from .verdicts import FewerReads as FewerReads
from .verdicts import Proved as Proved
from .verdicts import Undecided as Undecided
