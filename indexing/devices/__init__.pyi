# Public names, loaded on first use (`__init__.py`).
from .devices import Devices as Devices
from .gpus import Gpu as Gpu
from .grid import coverage as coverage
from .grid import row_map as row_map
from .grid import thread_map as thread_map
from .grid import tile_map as tile_map
