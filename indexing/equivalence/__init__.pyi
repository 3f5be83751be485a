# Public names, loaded on first use (`__init__.py`).
from .compare import equivalent as equivalent
from .correspondence import Correspondence as Correspondence
from .correspondence import correspondence as correspondence
from .costs import CostComparison as CostComparison
from .costs import compare_costs as compare_costs
from .in_place import Hazard as Hazard
from .in_place import in_place as in_place
from .passes import PassResult as PassResult
from .passes import passes as passes
from .triage import TriagedCase as TriagedCase
from .triage import TriageGroup as TriageGroup
from .triage import triage as triage
from .verdicts import Differs as Differs
from .verdicts import FewerReads as FewerReads
from .verdicts import Proved as Proved
from .verdicts import Undecided as Undecided
