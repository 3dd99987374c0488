"""Functions of a problem that loops call, selected by the type of its data.

The loop data of a kind of problem are a named tuple. The module that defines this type has the
functions ``gradient`` and ``order_parameters``, and optionally ``hessian`` and ``summary``, with
the signatures in this file. Compiled code selects functions by this type
(`dynamics.loops.compiler`).
"""

import sys

NAMES = ("gradient", "hessian", "order_parameters", "summary", "has_hessian")


def chosen(kind, name):
    """Function `name` of a kind of problem; a kind without it gets one that does nothing."""
    module = sys.modules[kind.__module__]
    if name == "has_hessian":
        return _yes if hasattr(module, "hessian") else _no
    return getattr(module, name, _nothing)


def _nothing(state, data, out):
    return


def _yes(data):
    return True


def _no(data):
    return False


def gradient(state, data, out):
    """Fill the gradient: one step of gradient descent subtracts eta times it."""
    chosen(type(data), "gradient")(state, data, out)


def hessian(state, data, out):
    """Fill the Jacobian of the gradient, shape (n, n)."""
    chosen(type(data), "hessian")(state, data, out)


def has_hessian(data):
    """Whether the kind of problem has a Hessian."""
    return chosen(type(data), "has_hessian")(data)


def order_parameters(state, slope, data, out):
    """Fill the order parameters at a state whose gradient is `slope`."""
    chosen(type(data), "order_parameters")(state, slope, data, out)


def summary(state, data, out):
    """Fill the risk and further reported numbers at a state."""
    chosen(type(data), "summary")(state, data, out)


def evaluate(name, state, slope, data, out):
    """Call one of the first four functions in `NAMES` by index; all four are compiled together."""
    if name == 0:
        gradient(state, data, out)
    elif name == 1:
        hessian(state, data, out.reshape((state.size, state.size)))
    elif name == 2:
        order_parameters(state, slope, data, out)
    else:
        summary(state, data, out)
