r"""Gradients along a flow from the linear equation that they obey.

Along :math:`d\theta/d\tau = -g(\theta)` the gradient itself obeys

.. math:: \frac{dg}{d\tau} = -J(\theta(\tau))\, g.                                              (1)

A gradient that has decayed by many decades is lost in the error of the state, but not in the
solution of (1), whose error is relative. Over a width h the solution is :math:`e^{\Omega} g`, with
J at the three Gauss points and

.. math:: \Omega = a_1 + \tfrac{1}{12} a_3
    + \tfrac{1}{240} [-20 a_1 - a_3 + c_1,\; a_2 + c_2],                                         (2)

:math:`A = -J`, :math:`a_1 = h A_2`, :math:`a_2 = \tfrac{\sqrt{15}}{3} h (A_3 - A_1)`,
:math:`a_3 = \tfrac{10}{3} h (A_3 - 2 A_2 + A_1)`, :math:`c_1 = [a_1, a_2]`,
:math:`c_2 = -\tfrac{1}{60} [a_1, 2 a_3 + c_1]`; the error is of order :math:`h^7`.

Source: S. Blanes, F. Casas, J. A. Oteo and J. Ros, The Magnus expansion and some of its
applications, Physics Reports 470 (2009), equations (255) and (257).
"""

from math import ceil, sqrt
from typing import Any

import numpy as np

from dynamics.codegen.kernels import exact
from dynamics.codegen.kernels.linear_algebra import copy, largest_sum
from dynamics.codegen.kernels.path_values import along

hessian: Any = None  # supplied by the generated file

TERMS = 14
"""Of the exponential series of a matrix of size 1/2: the next is below rounding."""


@exact
def carry_gradient(times, nodes, scales, coefficients, model, slopes):  # type: ignore[no-untyped-def]
    """Carry the gradient from the first of some times to all others.

    Parameters
    ----------
    times : float array, shape (T,)
        Ascending, within the path, as close as the error may be large.
    nodes, scales, coefficients
        The path, as of `dynamics.codegen.kernels.path_values.along`.
    model
        What the Hessian needs beside the state.
    slopes : float array, shape (T, n)
        The gradient at the first time on entry, at all on exit.
    """
    size = slopes.shape[1]
    third = sqrt(15.0) / 10.0
    between, states, rates = np.empty(3), np.empty((3, size)), np.empty((3, size))
    jacobians, exponent = np.empty((3, size, size)), np.empty((size, size))
    for step in range(times.size - 1):
        width = times[step + 1] - times[step]
        for k in range(3):
            between[k] = times[step] + width * (0.5 + (k - 1.0) * third)
        along(between, nodes, scales, coefficients, states, rates)
        for k in range(3):
            hessian(states[k], model, jacobians[k])
        magnus(width, jacobians, exponent)
        copy(slopes[step], slopes[step + 1])
        exponentiate(exponent, slopes[step + 1])


@exact
def magnus(width, jacobians, exponent):  # type: ignore[no-untyped-def]
    """The exponent (2) of a width.

    Parameters
    ----------
    width : float
        h.
    jacobians : float array, shape (3, n, n)
        J at the Gauss points.
    exponent : float array, shape (n, n)
    """
    shape = exponent.shape
    one, two, three = np.empty(shape), np.empty(shape), np.empty(shape)
    inner, outer, left = np.empty(shape), np.empty(shape), np.empty(shape)
    for i in range(shape[0]):
        for j in range(shape[1]):
            first, second, third = jacobians[0, i, j], jacobians[1, i, j], jacobians[2, i, j]
            one[i, j] = -width * second
            two[i, j] = -width * sqrt(15.0) / 3.0 * (third - first)
            three[i, j] = -width * 10.0 / 3.0 * (third - 2.0 * second + first)
    commute(one, two, inner)
    for i in range(shape[0]):
        for j in range(shape[1]):
            left[i, j] = 2.0 * three[i, j] + inner[i, j]
    commute(one, left, outer)
    for i in range(shape[0]):
        for j in range(shape[1]):
            left[i, j] = inner[i, j] - 20.0 * one[i, j] - three[i, j]
            outer[i, j] = two[i, j] - outer[i, j] / 60.0
    commute(left, outer, exponent)
    for i in range(shape[0]):
        for j in range(shape[1]):
            exponent[i, j] = one[i, j] + three[i, j] / 12.0 + exponent[i, j] / 240.0


@exact
def commute(left, right, result):  # type: ignore[no-untyped-def]
    """The commutator [left, right] of two square matrices.

    Parameters
    ----------
    left, right, result : float arrays, shape (n, n)
        The last is filled.
    """
    size = left.shape[0]
    for i in range(size):
        for j in range(size):
            result[i, j] = 0.0
            for k in range(size):
                result[i, j] += left[i, k] * right[k, j] - right[i, k] * left[k, j]


@exact
def exponentiate(exponent, values):  # type: ignore[no-untyped-def]
    """The exponential of a matrix times a vector, in place: its series, in parts of size 1/2.

    Parameters
    ----------
    exponent : float array, shape (n, n)
    values : float array, shape (n,)
    """
    parts = max(1, ceil(2.0 * largest_sum(exponent)))
    size = values.size
    term, image = np.empty(size), np.empty(size)
    for _ in range(parts):
        copy(values, term)
        for order in range(1, TERMS + 1):
            for i in range(size):
                image[i] = 0.0
                for j in range(size):
                    image[i] += exponent[i, j] * term[j]
            for i in range(size):
                term[i] = image[i] / (parts * order)
                values[i] += term[i]
