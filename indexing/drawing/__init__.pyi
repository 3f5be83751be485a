# Public names, loaded on first use (`__init__.py`).
from .drawing import Drawing as Drawing
from .layout_pictures import plot_layout as plot_layout
from .thread_pictures import plot_threads as plot_threads
from .warp_pictures import plot_banks as plot_banks
