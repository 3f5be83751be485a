# Public names, loaded on first use (`__init__.py`).
from .collapsing import Collapse as Collapse
from .collapsing import collapse as collapse
from .gathering import Gather as Gather
from .gathering import GatherError as GatherError
from .gathering import gather as gather
from .gathering import gather_of as gather_of
from .grid import coverage as coverage
from .grid import thread_map as thread_map
from .grid import tile_map as tile_map
from .tiles.operands import TiledOperand as TiledOperand
from .tiles.symbolic import SymbolicTile as SymbolicTile
from .tiles.symbolic import symbolic_tile as symbolic_tile
from .tiles.tiling import Tiling as Tiling
from .tiles.tiling import tile as tile
