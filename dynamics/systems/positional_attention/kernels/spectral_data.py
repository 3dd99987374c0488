"""Data of the kernels of the spectral expectation; equation numbers are those of `spectral`."""

from typing import NamedTuple

import numpy as np


class SumLaw(NamedTuple):
    """The law of the types and of the sums z, and where contours may lie.

    Flat, as `Columns` is, because threads are handed no records within records.

    Attributes
    ----------
    probability, sums : arrays, shape (K,)
        P_k and z_k of each type; the last type is the signal set's.
    z, chance : arrays, shape (columns,)
        Sums of the random sets that are likely enough, and their probabilities.
    chance_less : float array, shape (columns, K)
        P_k pmf_{n-1}(z - z_k), see (5).
    outward : int array, shape (columns,)
        Positions of the sums, the likeliest first.
    tilt : float array, shape (columns,)
        The lambda that minimises (4) at kappa 0, up to `saddle_points.LARGEST_TILT` in size.
    kappas : float array
        Grid of contours, with the poles -1, 0, 1 in it.
    first, last : int
        Positions in it that may carry a contour.
    count : int
        n, the number of random sets.
    law_error : float
        Relative error of the probabilities.
    """

    probability: np.ndarray
    sums: np.ndarray
    z: np.ndarray
    chance: np.ndarray
    chance_less: np.ndarray
    outward: np.ndarray
    tilt: np.ndarray
    kappas: np.ndarray
    first: int
    last: int
    count: int
    law_error: float


class Columns(NamedTuple):
    """What is computed at every z: bounds, plan and weights; shape (columns,) where none is said.

    Attributes
    ----------
    psi, lam : float arrays, shape (columns, kappas)
        A bound on the exponent (4), which it is unless weights underflow, and the lambda that
        minimises it. Psi is `saddle_points.UNKNOWN` at kappa that were not looked at.
    reach : float array, shape (columns, 4, kappas)
        Tilted means of the sum of |dh| over the sets, by alpha, gamma, rho, and of |h|.
    upper : float array, shape (columns, 4)
        Upper bounds on E[s |dF|] and on the risk at z.
    scanned : bool array
        False where a trivial bound was too small to matter, so that psi and lambda are not known.
    contour : int array
        Position of the kappa of the integral; -1: nothing to integrate.
    step, window : float arrays
        Step and half width of the trapezoidal rule in omega.
    log_bound : float array
        Logarithm of the bound of the integrand.
    error : float array
        Error allowed, relative to the gross.
    crossed : bool array
        Whether the error of the step is known beyond the pole at 0 only.
    length : int array
        Length M of the Fourier transform.
    first, second : float arrays, shape (columns, K)
        w_k of s, and v_k of s (1 - s).
    pairs : float array, shape (columns, 6)
        E[ s (1 - s) dh_i(set 1) dh_j(set 2); z ] for i <= j.
    risks, errors : float arrays
        Integral of the risk; error reached relative to the gross, -1 where nothing was integrated.
    noise : float array, shape (columns, 4)
        Bounds on what rounding adds to gradient and risk, where something was integrated.
    """

    psi: np.ndarray
    lam: np.ndarray
    reach: np.ndarray
    upper: np.ndarray
    scanned: np.ndarray
    contour: np.ndarray
    step: np.ndarray
    window: np.ndarray
    log_bound: np.ndarray
    error: np.ndarray
    crossed: np.ndarray
    length: np.ndarray
    first: np.ndarray
    second: np.ndarray
    pairs: np.ndarray
    risks: np.ndarray
    errors: np.ndarray
    noise: np.ndarray


class SpectralData(NamedTuple):
    """What the kernels need beside the state (alpha, gamma, rho).

    Attributes
    ----------
    constants : float array
        Values of the parameters of the reduction.
    share : float array, shape (3,)
        One over the number of entries of each state.
    latents : three float arrays
        Values x of a patch, sums of a set, sums Z of all sets.
    composition, multiples, sum_index : arrays, shapes (K, 3), (K, 3), (K,)
        Of each type: patches of each value, multiples of the parts of a share, position of its sum
        among the sums.
    law : SumLaw
    budget : float
        Largest number of nodes of one gradient.
    tolerance : float
        Error allowed, relative to the gross.
    parts, tables : float arrays
        Scratch: h and its derivatives by part (4, 3, 2 C + 1, columns) and type (4, K, columns).
    columns : Columns
        Scratch.
    values, gross, bounds : float arrays, shape (4,)
        Results: E[s dF] by alpha, gamma, rho, and the risk; the same with every set's contribution
        in absolute value; bounds on the error.
    report : float array, shape (2,)
        Results: nodes, and a status. 0: no fault; 1: more nodes than the budget; 2: the integrals
        overflow; 3: they cancel until not a digit is left.
    """

    constants: np.ndarray
    share: np.ndarray
    latents: tuple[np.ndarray, np.ndarray, np.ndarray]
    composition: np.ndarray
    multiples: np.ndarray
    sum_index: np.ndarray
    law: SumLaw
    budget: float
    tolerance: float
    parts: np.ndarray
    tables: np.ndarray
    columns: Columns
    values: np.ndarray
    gross: np.ndarray
    bounds: np.ndarray
    report: np.ndarray
