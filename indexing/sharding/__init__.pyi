# Public names, loaded on first use (`__init__.py`).
from .collectives import collective_costs as collective_costs
from .derived_rules import sharding_rule as sharding_rule
from .planning.plan import Plan as Plan
from .planning.search import BestShardings as BestShardings
from .planning.search import best_shardings as best_shardings
from .planning.sharded import shard as shard
from .rules import Factor as Factor
from .rules import ShardingRule as ShardingRule
from .signature_checks import Refused as Refused
from .signature_checks import check_signature as check_signature
from .signatures import SbpSignature as SbpSignature
from .signatures import SbpSignatures as SbpSignatures
from .signatures import sbp as sbp
