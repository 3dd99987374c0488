"""Interpreter of reduced programs on floats (see `theory.program`): one kernel for all models.

An instruction is a row of integers. In a call, the array `values` holds the inputs, then the
constants, then the results of the instructions in order.
"""

from math import (
    asinh,
    atan,
    atan2,
    cos,
    cosh,
    erf,
    erfc,
    exp,
    expm1,
    isfinite,
    log,
    sin,
    sinh,
    tan,
    tanh,
)  # fmt: skip
from typing import Any, NamedTuple

import numpy as np

from dynamics.loops.kernels import inlined, kernels
from dynamics.loops.kernels.elementary import logistic, logistic_loss

# Codes of `theory.program.operations.OPERATIONS`; codes 0 and 1 are inputs and constants.
SUM, LOGSUMEXP, LARGEST, MUL, DIV, INTEGER_POW, POW, MAX, SELECT = 2, 3, 4, 5, 6, 7, 8, 9, 10
LT, LE, EQ, STOP, EXP, LOG, LOG1P, EXPM1, SQRT, RSQRT, CBRT = (
    11,
    12,
    13,
    14,
    15,
    16,
    17,
    18,
    19,
    20,
    21,
)
TANH, SIGMOID, SOFTPLUS, SIN, COS, TAN, SINH, COSH = 22, 23, 24, 25, 26, 27, 28, 29
ASIN, ACOS, ATAN, ASINH, ACOSH, ATANH, ERF, ERFC = 30, 31, 32, 33, 34, 35, 36, 37
ABS, SIGN, FLOOR, ROUND, TRUNC, IS_FINITE, ATAN2, REM, SHARE = 38, 39, 40, 41, 42, 43, 44, 45, 46


class List(NamedTuple):
    """Program in the form that compiled loops take."""

    given: Any  # constants and weights, stored in `values` after the inputs
    instructions: Any  # (m, 4)
    index: Any
    count: Any
    outputs: Any
    size: int  # number of elements of `values`


class ProgramData(NamedTuple):
    """Loop data of a reduced problem of a model file."""

    slope: Any  # program of the gradient; its inputs are the state
    order: Any  # program of the order parameters; its inputs are the state, then the gradient
    curvature: Any  # program of a Hessian column; its inputs are the state, then a direction


@inlined
def total_of(values, index, count, first, length):
    """Weighted sum of a row of numbers, in four partial sums for long rows."""
    a = count[first] * values[index[first]]
    if length == 1:
        return a
    b = count[first + 1] * values[index[first + 1]]
    if length == 2:
        return a + b
    c = count[first + 2] * values[index[first + 2]]
    if length == 3:
        return (a + b) + c
    d = count[first + 3] * values[index[first + 3]]
    whole = first + length - length % 4
    for k in range(first + 4, whole, 4):
        a += count[k] * values[index[k]]
        b += count[k + 1] * values[index[k + 1]]
        c += count[k + 2] * values[index[k + 2]]
        d += count[k + 3] * values[index[k + 3]]
    for k in range(whole, first + length):
        a += count[k] * values[index[k]]
    return (a + b) + (c + d)


@inlined
def of_row(code, values, index, count, first, length):
    """Logsumexp or maximum of a row of numbers."""
    top = -np.inf
    for k in range(first, first + length):
        top = max(top, values[index[k]])
    if code == LARGEST or not isfinite(top):
        return top
    total = 0.0
    for k in range(first, first + length):
        total += count[k] * exp(values[index[k]] - top)
    return top + log(total)


@inlined
def whole_power(x, exponent):
    """Power with an integer exponent, by products for exponents 2 and 3."""
    if exponent == 2.0:
        return x * x
    if exponent == 3.0:
        return x * x * x
    return x**exponent


@inlined
def of_one(code, x):
    """Elementwise operation with a given code on one number, or NaN outside its domain."""
    if code == EXP:
        return exp(x)
    if code == SIGMOID:
        return logistic(x)
    if code == SOFTPLUS:
        return logistic_loss(-x)
    if code == TANH:
        return tanh(x)
    if code == LOG:
        return np.log(x)
    if code == LOG1P:
        return np.log1p(x)
    if code == EXPM1:
        return expm1(x)
    if code == SQRT:
        return np.sqrt(x)
    if code == RSQRT:
        return 1.0 / np.sqrt(x)
    if code == CBRT:
        return np.cbrt(x)
    if code == ERF:
        return erf(x)
    if code == ERFC:
        return erfc(x)
    if code == ABS:
        return abs(x)
    if code == SIGN:
        return np.sign(x)
    if code == SIN:
        return sin(x)
    if code == COS:
        return cos(x)
    if code == TAN:
        return tan(x)
    if code == SINH:
        return sinh(x)
    if code == COSH:
        return cosh(x)
    if code == ASIN:
        return np.arcsin(x)
    if code == ACOS:
        return np.arccos(x)
    if code == ATAN:
        return atan(x)
    if code == ASINH:
        return asinh(x)
    if code == ACOSH:
        return np.arccosh(x)
    if code == ATANH:
        return np.arctanh(x)
    if code == FLOOR:
        return np.floor(x)
    if code == ROUND:
        return np.rint(x)
    if code == TRUNC:
        return np.trunc(x)
    if code == IS_FINITE:
        return 1.0 if isfinite(x) else 0.0
    return x


@inlined
def of_two(code, a, b):
    """Elementwise operation with a given code on two numbers."""
    if code == MUL:
        return a * b
    if code == DIV:
        return a / b
    if code == SHARE:
        return exp(a - b)
    if code == MAX:
        return np.maximum(a, b)
    if code == LT:
        return 1.0 if a < b else 0.0
    if code == LE:
        return 1.0 if a <= b else 0.0
    if code == EQ:
        return 1.0 if a == b else 0.0
    if code == POW:
        return a**b
    if code == ATAN2:
        return atan2(a, b)
    return np.fmod(a, b)


@inlined
def fill(values, first, source):
    """Copy numbers into `values`, from index `first` on."""
    for k in range(source.size):
        values[first + k] = source[k]


def forward(program, values):
    """Compute every result of a program in `values`, which must hold the inputs."""
    given, index, count = program.given, program.index, program.count
    begin = program.instructions[0, 1] if program.instructions.shape[0] else values.size
    fill(values, begin - given.size, given)
    at = 0
    for m in range(program.instructions.shape[0]):
        code = program.instructions[m, 0]
        first, last, length = (
            program.instructions[m, 1], program.instructions[m, 2], program.instructions[m, 3]
        )  # fmt: skip
        if code == SUM:
            for v in range(first, last):
                values[v] = total_of(values, index, count, at, length)
                at += length
        elif code == MUL:
            for v in range(first, last):
                values[v] = values[index[at]] * values[index[at + 1]]
                at += 2
        elif code == INTEGER_POW:
            for v in range(first, last):
                values[v] = whole_power(values[index[at]], count[at])
                at += 1
        elif code == SELECT:
            for v in range(first, last):
                chosen = at + 1 if values[index[at]] != 0.0 else at + 2
                values[v] = values[index[chosen]]
                at += 3
        elif code in (LOGSUMEXP, LARGEST):
            for v in range(first, last):
                values[v] = of_row(code, values, index, count, at, length)
                at += length
        elif length == 1:
            for v in range(first, last):
                values[v] = of_one(code, values[index[at]])
                at += 1
        else:
            for v in range(first, last):
                values[v] = of_two(code, values[index[at]], values[index[at + 1]])
                at += 2


def results(program, values, out):
    """Run a program and copy its outputs to `out`."""
    forward(program, values)
    for k in range(program.outputs.size):
        out[k] = values[program.outputs[k]]


def gradient(state, data, out):
    """Fill the gradient: one step of gradient descent subtracts eta times it."""
    values = np.empty(data.slope.size)
    fill(values, 0, state)
    results(data.slope, values, out)


def order_parameters(state, slope, data, out):
    """Fill the order parameters at a state whose gradient is `slope`."""
    values = np.empty(data.order.size)
    fill(values, 0, state)
    fill(values, state.size, slope)
    results(data.order, values, out)


def hessian(state, data, out):
    """Fill the Jacobian of the gradient, one column per direction of the state."""
    values, column = np.empty(data.curvature.size), np.empty(state.size)
    fill(values, 0, state)
    for j in range(state.size):
        for k in range(state.size):
            values[state.size + k] = 1.0 if k == j else 0.0
        results(data.curvature, values, column)
        for k in range(state.size):
            out[k, j] = column[k]


def rows_of(states, program, out):
    """Fill the outputs of a program at many inputs, shape (rows, outputs)."""
    values = np.empty(program.size)
    for row in range(len(states)):
        fill(values, 0, states[row])
        results(program, values, out[row])


kernels(__name__)
