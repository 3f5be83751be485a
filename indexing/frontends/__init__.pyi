# Public names, loaded on first use (`__init__.py`).
from .compilation import CompilationError as CompilationError
from .jax import from_jax as from_jax
