# Public names, loaded on first use (`__init__.py`).
from .access import Accesses as Accesses
from .access import MemoryAccess as MemoryAccess
from .access import access as access
from .access import array_access as array_access
from .caches.orders import BlockOrder as BlockOrder
from .caches.orders import block_orders as block_orders
from .counting import read_counts as read_counts
from .layouts.cute import CuteLayout as CuteLayout
from .layouts.swizzle import Swizzle as Swizzle
from .layouts.text import parse_cute as parse_cute
from .movement.analysis import traffic as traffic
