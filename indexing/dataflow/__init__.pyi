# Public names, loaded on first use (`__init__.py`).
from .device_queries import device_input_to_output as device_input_to_output
from .device_queries import device_maps as device_maps
from .device_queries import device_maps_to_parameters as device_maps_to_parameters
from .epilogues import epilogue as epilogue
from .epilogues import grouped_through as grouped_through
from .loops.counted import induction_variables as induction_variables
from .loops.counted import loop_facts as loop_facts
from .loops.counted import trip_count as trip_count
from .loops.facts import InductionVariable as InductionVariable
from .loops.facts import LoopFacts as LoopFacts
from .loops.facts import TripCount as TripCount
from .loops.unroll import unroll as unroll
from .queries import all_to_parameters as all_to_parameters
from .queries import grouped as grouped
from .queries import input_to_output as input_to_output
from .queries import output_to_input as output_to_input
from .queries import to_parameters as to_parameters
