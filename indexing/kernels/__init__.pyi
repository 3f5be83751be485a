# Public names, loaded on first use (`__init__.py`).
from .checks import check_kernel as check_kernel
from .checks import check_stages as check_stages
from .dumps import kernels_of as kernels_of
from .kernel import Kernel as Kernel
from .reader import read_module as read_module
from .run import Launch as Launch
from .verdicts import KernelDiffers as KernelDiffers
from .verdicts import KernelProved as KernelProved
from .verdicts import KernelUndecided as KernelUndecided
