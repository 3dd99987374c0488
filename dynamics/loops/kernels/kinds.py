"""Functions of a problem that loops call, chosen by the type of its data.

The data of a kind of problem are one named tuple. The module of the tuple has the functions
``gradient`` and ``order_parameters``, and ``hessian`` and ``summary`` where they can be had, with
the arguments of those here. Compiled code chooses them by the type (`dynamics.loops.compiler`).
"""

import sys

NAMES = ("gradient", "hessian", "order_parameters", "summary", "has_hessian")


def chosen(kind, name):
    """The function of a kind of problem, or one that does nothing where it has none."""
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
    """Fill what one step of gradient descent subtracts, divided by eta."""
    chosen(type(data), "gradient")(state, data, out)


def hessian(state, data, out):
    """Fill the Jacobian of the gradient, shape (n, n)."""
    chosen(type(data), "hessian")(state, data, out)


def has_hessian(data):
    """Whether the kind of problem has a Hessian."""
    return chosen(type(data), "has_hessian")(data)


def order_parameters(state, slope, data, out):
    """Fill the order parameters at a state with its gradient."""
    chosen(type(data), "order_parameters")(state, slope, data, out)


def summary(state, data, out):
    """Fill risk and error at a state, and what else is reported there."""
    chosen(type(data), "summary")(state, data, out)


def evaluate(name, state, slope, data, out):
    """One of the functions above, by its position in `NAMES`; all are compiled together."""
    if name == 0:
        gradient(state, data, out)
    elif name == 1:
        hessian(state, data, out.reshape((state.size, state.size)))
    elif name == 2:
        order_parameters(state, slope, data, out)
    else:
        summary(state, data, out)
