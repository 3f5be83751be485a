# Implementations of the methods of modules, with their modules (`methods.py`).
from .formats.parser import restored_module as restored_module
from .modules.compare import is_same as is_same
from .modules.find import instructions_of as instructions_of
from .modules.find import readers_of as readers_of
from .modules.infer import infer_missing as infer_missing
from .modules.module import Instruction as Instruction
from .modules.module import Module as Module
from .modules.panels import module_html as module_html
from .modules.panels import styled_computation as styled_computation
from .modules.shardings import meshes_of as meshes_of
from .modules.shardings import sharding_of as sharding_of
from .modules.stored import stored_computation as stored_computation
from .modules.stored import stored_instruction as stored_instruction
from .modules.stored import stored_module as stored_module
from .shardings.printing import hlo_text as hlo_text
from .shardings.printing import shardy_text as shardy_text
