# Public names, loaded on first use (`__init__.py`).
from .partition.collective_costs import collective_costs as collective_costs
from .partition.needed_exchanges import needed_exchanges as needed_exchanges
from .planning.plan import Plan as Plan
from .planning.search import BestShardings as BestShardings
from .planning.search import best_shardings as best_shardings
from .planning.sharded_programs import shard as shard
from .rules.derived_rules import sharding_rule as sharding_rule
from .rules.sharding_rules import Factor as Factor
from .rules.sharding_rules import ShardingRule as ShardingRule
from .signatures.checks import Refused as Refused
from .signatures.checks import check_signature as check_signature
from .signatures.sbp_signatures import SbpSignature as SbpSignature
from .signatures.sbp_signatures import SbpSignatures as SbpSignatures
from .signatures.sbp_signatures import sbp as sbp
