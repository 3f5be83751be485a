import typing

# Public names, loaded on first use (`__init__.py`).
from .dataflow.queries import grouped as grouped
from .dataflow.queries import input_to_output as input_to_output
from .dataflow.queries import output_to_input as output_to_input
from .dataflow.queries import to_parameters as to_parameters
from .maps.answers import Answer as Answer
from .maps.answers import Unknown as Unknown
from .maps.indexing_map import IndexingMap as IndexingMap
from .maps.text import parse_map as parse_map

def __getattr__(name: str) -> typing.Any: ...  # public names of rooms
