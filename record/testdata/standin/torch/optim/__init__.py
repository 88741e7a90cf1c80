from .optimizer import Optimizer

del optimizer  # noqa: F821  as PyTorch does


class SGD(Optimizer):
    pass
