# Public names, loaded on first use (`__init__.py`).
from .device_queries import device_input_to_output as device_input_to_output
from .device_queries import device_maps as device_maps
from .device_queries import device_maps_to_parameters as device_maps_to_parameters
from .epilogues import epilogue as epilogue
from .epilogues import grouped_through as grouped_through
from .queries import all_to_parameters as all_to_parameters
from .queries import grouped as grouped
from .queries import input_to_output as input_to_output
from .queries import output_to_input as output_to_input
from .queries import to_parameters as to_parameters
