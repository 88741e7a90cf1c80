from . import cuda


class Node:
    """A node of an autograd graph."""

    def __init__(self, name, *below):
        self._name = name
        self.next_functions = tuple((b, 0) for b in below)

    def name(self):
        return self._name


class Tensor:
    """A tensor on the device. The collector does not see its graph, nor its gradient."""

    __slots__ = ("_at", "_hidden", "__weakref__")
    is_cuda = True
    requires_grad = False

    def __init__(self, size=1024, node=None):
        self._at = cuda.allocate(size)
        self._hidden = _hide(node)

    @property
    def grad_fn(self):
        return _hidden.get(self._hidden)

    def data_ptr(self):
        return self._at

    def storage_offset(self):
        return 0

    def element_size(self):
        return 4


_hidden = {}


def _hide(node):
    """A number that stands for a node."""
    if node is None:
        return 0
    _hidden[id(node)] = node
    return id(node)
