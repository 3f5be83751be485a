# Public names, loaded on first use (`__init__.py`).
from .devices import Devices as Devices
