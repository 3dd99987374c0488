"""Arithmetic of numbers represented by their residues modulo three primes.

A *triple* holds the three residues of one number; an array of triples has the shape (..., 3). If
the triples of two expressions agree at random triples of the inputs, the expressions are equal,
with a negligible probability of error (Schwartz 1980, Zippel 1979, Gulwani and Necula, POPL 2004).
Sums, products, quotients and integer powers of triples are exact. A function such as exp has no
residues; its triple is a hash of its name and its argument's triple.
"""

from __future__ import annotations

import zlib
from fractions import Fraction
from math import gcd, isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

Triples = NDArray[np.uint64]

PRIMES = np.array([2147483647, 2147483629, 2147483587], dtype=np.uint64)
"""Three primes below 2^31, so that a product of two residues fits in 64 bits."""
MAX_DENOMINATOR = 10**6
"""Maximum denominator of a fraction that replaces a float if it rounds to this float."""
NEAR_DENOMINATOR, NEAR = 10**4, Fraction(1, 2**50)
"""Maximum denominator of a fraction that replaces a float near it, such as a computed probability,
and maximum relative difference between the fraction and the float."""
GRID = 1 << 40
"""Inverse of the spacing of the grid of fractions to which `on_grid` rounds floats."""
LIMB = 1 << 16
"""A residue is split into two digits in this base, so that BLAS sums products of digits exactly."""


def residues(number: int | Fraction) -> Triples:
    """Triple of residues of a fraction, shape (3,)."""
    fraction = Fraction(number)
    return np.array(
        [
            fraction.numerator * pow(fraction.denominator, -1, int(p)) % int(p)
            if fraction.denominator % int(p)
            else 0
            for p in PRIMES
        ],
        dtype=np.uint64,
    )


def add(a: Triples, b: Triples) -> Triples:
    """Sum of triples, shape (..., 3)."""
    return (a + b) % PRIMES


def negative(a: Triples) -> Triples:
    """Negative of triples, shape (..., 3)."""
    return (PRIMES - a) % PRIMES


def multiply(a: Triples, b: Triples) -> Triples:
    """Product of triples, shape (..., 3)."""
    return (a * b) % PRIMES


def power(a: Triples, exponent: Any) -> Triples:
    """Power of triples; the exponents are integers >= 0 and broadcast against the residues."""
    exponent = np.broadcast_to(np.asarray(exponent, dtype=np.uint64), a.shape).copy()
    result, base = np.ones_like(a), a
    while exponent.any():
        result = np.where(exponent & np.uint64(1), multiply(result, base), result)
        base = multiply(base, base)
        exponent >>= np.uint64(1)
    return result


def inverse(a: Triples) -> Triples:
    """Reciprocals of triples by Fermat's theorem; the reciprocal of 0 is 0."""
    return power(a, PRIMES - np.uint64(2))


HALF = residues(Fraction(1, 2))


def matrix_product(left: Triples, right: Triples) -> Triples:
    """Exact products of matrices of triples, (B, M, K, 3) and (B, K, N, 3) -> (B, M, N, 3)."""
    result = np.empty((*left.shape[:2], right.shape[2], 3), dtype=np.uint64)
    limb = np.uint64(LIMB)
    for k, prime in enumerate(PRIMES):
        a, b = left[..., k], right[..., k]
        low, high = (a % limb).astype(float), (a // limb).astype(float)
        first, second = (b % limb).astype(float), (b // limb).astype(float)
        total = (high @ second).astype(np.uint64) % prime
        mixed = (high @ first + low @ second).astype(np.uint64) % prime
        total = (total * limb + mixed) % prime
        result[..., k] = (total * limb + (low @ first).astype(np.uint64)) % prime
    return result


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit integers (finalizer of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def hashed(name: str, *arguments: Triples) -> Triples:
    """Hashes of a name and of every residue of the arguments, as triples."""
    state: Any = np.uint64(zlib.crc32(name.encode()))
    with np.errstate(over="ignore"):
        for argument in arguments:
            for k in range(3):
                state = _mixed(np.asarray(state + argument[..., k] * np.uint64(0x9E3779B97F4A7C15)))
        parts = [_mixed(np.asarray(state + np.uint64(k + 1))) for k in range(3)]
    return np.stack(parts, axis=-1) % PRIMES


def _smaller(a: Triples) -> tuple[NDArray[np.bool_], Triples]:
    """Mask of a <= -a, compared by the first residue, and the smaller of a and -a."""
    opposite = negative(a)
    own = (a[..., 0] <= opposite[..., 0])[..., None]
    return own, np.where(own, a, opposite)


def odd(name: str, a: Triples) -> Triples:
    """Hash of an odd function at a: that of the smaller of a and -a, negated if it is -a."""
    own, smaller = _smaller(a)
    base = np.where((a == 0).all(axis=-1)[..., None], np.uint64(0), hashed(name, smaller))
    return np.where(own, base, negative(base))


def even(name: str, a: Triples) -> Triples:
    """Hash of an even function at a: the hash of the smaller of a and -a."""
    return hashed(name, _smaller(a)[1])


def fraction_of(number: float) -> Fraction:
    """Fraction with a small denominator that rounds to a float, else the float's exact value."""
    exact = Fraction(number)
    simple = exact.limit_denominator(MAX_DENOMINATOR)
    return simple if float(simple) == number else exact


def simplest(number: float) -> Fraction:
    """Fraction within a few rounding errors of a finite float (see `NEAR`), else `fraction_of`."""
    near = Fraction(number).limit_denominator(NEAR_DENOMINATOR)
    return near if abs(near - Fraction(number)) <= NEAR * abs(number) else fraction_of(number)


def read_back(triple: Triples) -> Fraction | None:
    """Fraction with a given triple and with numerator and denominator below 2^46, or None."""
    modulus, residue = 1, 0
    for prime, part in zip(PRIMES.tolist(), triple.tolist(), strict=True):
        residue += modulus * ((part - residue) * pow(modulus, -1, prime) % prime)
        modulus *= prime
    bound = isqrt(modulus // 2)
    large, small, before, factor = modulus, residue, 0, 1
    while small > bound:
        quotient = large // small
        large, small = small, large - quotient * small
        before, factor = factor, before - quotient * factor
    if abs(factor) > bound or gcd(small, factor) != 1:
        return None
    return Fraction(small, factor)


def drawn(generator: np.random.Generator, *shape: int) -> Triples:
    """Random triples with nonzero residues, shape (*shape, 3)."""
    draws = [generator.integers(1, int(prime), shape) for prime in PRIMES]
    return np.stack(draws, axis=-1).astype(np.uint64)


def on_grid(number: float) -> Fraction:
    """Fraction with a small denominator that rounds to a float, else the nearest grid point.

    The grid has the spacing 2^-40; rounding to it preserves relations such as z = 1 - y. A number
    of absolute value below 2^-20 is converted exactly.
    """
    found = fraction_of(number)
    if found.denominator <= MAX_DENOMINATOR or abs(number) < 2.0**-20:
        return found
    return Fraction(round(found * GRID), GRID)


def data_triples(numbers: NDArray[np.float64], read: Any = fraction_of) -> Triples:
    """Triples of floats, shape (n, 3); a float that is not finite gets a hash.

    The function `read` maps a finite float to a fraction.
    """
    result = np.empty((numbers.size, 3), dtype=np.uint64)
    for k, number in enumerate(numbers.tolist()):
        if np.isfinite(number):
            result[k] = residues(read(number))
        else:
            result[k] = hashed(f"float {number}")
    return result
