# Public names, loaded on first use (`__init__.py`).
from .compilation import CompilationError as CompilationError
from .jax import from_jax as from_jax
from .layout_trials import LayoutTrial as LayoutTrial
from .layout_trials import TriedLayout as TriedLayout
from .layout_trials import try_layouts as try_layouts
