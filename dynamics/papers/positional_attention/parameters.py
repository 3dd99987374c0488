"""Parameters of positional attention, validated on construction."""

from __future__ import annotations

from math import sqrt

from pydantic.dataclasses import dataclass

from dynamics.parameter_fields import STRICT, divisor, number, refusing, whole, word
from theory.papers.positional_attention.data_law import ANY, RANDOM_SETS, SetLaw

MAX_DEGREE = 1001
"""Maximum degree p; binomial coefficients of a larger p overflow double precision."""


@refusing
@dataclass(frozen=True, config=STRICT, kw_only=True)
class Parameters:
    """Data law, model and start of positional attention (Assumption 1, Parametrization 3.1).

    Attributes
    ----------
    D : int
        Number of patches.
    C : int
        Patches in each set; divides D, 2 <= C < D.
    q : float
        Probability that a patch of a random set carries a feature, in (0, 1].
    p : int
        Odd degree of the activation, at least 3.
    nu : float
        Coefficient of the linear part of the activation, positive.
    beta : float
        Diagonal of A (sigma_A), never trained.
    d : int
        Dimension of a patch; default D.
    sigma : float
        Standard deviation of the noise per coordinate; default 1/sqrt(d).
    omega : float
        Standard deviation of a random start.
    scale : float
        Factor in the exponent of the softmax, positive.
    alpha0 : float
        alpha at the start; default nu^(1/(p-1)).
    random_sets : str
        ``"any"``: the law of Assumption 1; ``"mixed"``: no random set has a single sign.
    """

    D: whole(4) = 16  # type: ignore[valid-type]
    C: divisor(of="D") = 4  # type: ignore[valid-type]
    q: number(above=0.0, at_most=1.0) = 0.5  # type: ignore[valid-type]
    p: whole(3, odd=True, at_most=MAX_DEGREE) = 3  # type: ignore[valid-type]
    nu: number(above=0.0) = 1e-3  # type: ignore[valid-type]
    beta: number() = 1.0  # type: ignore[valid-type]
    d: whole(1, optional=lambda fields: fields["D"]) = None  # type: ignore[valid-type]
    sigma: number(at_least=0.0, optional=lambda fields: 1 / sqrt(fields["d"])) = None  # type: ignore[valid-type]
    omega: number(at_least=0.0) = 1e-3  # type: ignore[valid-type]
    scale: number(above=0.0) = 1.0  # type: ignore[valid-type]
    alpha0: number(optional=lambda fields: fields["nu"] ** (1 / (fields["p"] - 1))) = None  # type: ignore[valid-type]
    random_sets: word(*RANDOM_SETS) = ANY  # type: ignore[valid-type]

    @property
    def L(self) -> int:  # noqa: N802 (the paper's letter)
        """Number of sets, D/C."""
        return int(self.D // self.C)

    @property
    def set_law(self) -> SetLaw:
        """Law of the numbers of patches at +1 and -1 in one random set."""
        return SetLaw(self.C, self.q, self.random_sets)
