"""Stands in for PyTorch: what the recorder uses of it, with the signatures of a release.

STANDIN chooses the release: 2.0, 2.3, 2.6, 2.11, or cpu for a build without a device.
"""

import os

_RELEASE = os.environ.get("STANDIN", "2.6")
__version__ = ("2.6" if _RELEASE == "cpu" else _RELEASE) + ".0"


class version:
    cuda = None if _RELEASE == "cpu" else "12.4"
    hip = None


class OutOfMemoryError(RuntimeError):
    pass


from . import _C, autograd, cuda, optim  # noqa: E402, F401
from ._tensor import Tensor  # noqa: E402, F401

distributed = None


def __getattr__(name):
    if name == "_inductor":
        import importlib

        return importlib.import_module("torch._inductor")
    raise AttributeError(f"module 'torch' has no attribute {name!r}")
