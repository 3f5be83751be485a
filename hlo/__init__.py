"""HLO text to modules and back.

>>> import hlo
>>> module = hlo.parse("ENTRY e { p = f32[2,3] parameter(0) ROOT n = f32[2,3] negate(p) }")
>>> module.entry.root.shape.dims
(2, 3)
>>> hlo.parse(str(module)) == module
True
"""

from hlo.builder import Builder as Builder
from hlo.checks import verify as verify
from hlo.compare import difference as difference
from hlo.files import load as load
from hlo.files import load_all as load_all
from hlo.infer import infer_shapes as infer_shapes
from hlo.layout import Layout as Layout
from hlo.memory import from_physical as from_physical
from hlo.memory import to_physical as to_physical
from hlo.module import Computation as Computation
from hlo.module import Instruction as Instruction
from hlo.module import Module as Module
from hlo.parser import parse as parse
from hlo.parser import parse_all as parse_all
from hlo.shape import BufferShape as BufferShape
from hlo.shape import OpaqueShape as OpaqueShape
from hlo.shape import Shape as Shape
from hlo.shape import TupleShape as TupleShape
from hlo.shape import parse_shape as parse_shape
from hlo.source import HloError as HloError
from hlo.source import Source as Source
from hlo.source import Span as Span
