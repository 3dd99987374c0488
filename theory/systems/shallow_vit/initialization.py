r"""What the paper assumes of the start: lucky neurons, the printed scales, the share of confusion.

The rows of :math:`W_O^{(0)}` are Gaussian, so their directions are uniform on the sphere of
:math:`R^{m_a}`. The share of them within an angle theta of a given direction is

.. math:: \tfrac12 I_{\sin^2\theta}\big(\tfrac{m_a - 1}{2}, \tfrac12\big), \qquad
   \theta \leq \tfrac\pi2,

I the regularised incomplete beta function: of the order of :math:`\theta^{m_a - 1}`. Lemma 3 gives
:math:`\frac1M (1 - \epsilon_m - \theta M / \pi)`, which grows as theta falls; its hypothesis
:math:`m \geq \epsilon_m^{-2} M^2 \log N` allows no :math:`\epsilon_m` below
:math:`M \sqrt{\log N / m}`.
"""

from __future__ import annotations

from math import exp, log, pi, sin, sqrt

from theory.claims import Evidence


def cap_share(dimension: int, angle: float) -> float:
    """Share of a sphere within an angle of a direction.

    Parameters
    ----------
    dimension : int
        Of the space, at least 2.
    angle : float
        In radians, between 0 and pi.
    """
    from scipy.special import betainc

    inside = float(betainc((dimension - 1) / 2, 0.5, sin(angle) ** 2)) / 2
    return inside if angle <= pi / 2 else 1 - inside


def least_epsilon(M: int, neurons: int, samples: int) -> float:
    """The least epsilon_m that the hypothesis of Lemma 3 allows."""
    return M * sqrt(log(samples) / neurons)


def claimed_share(M: int, angle: float, epsilon: float = 0.0) -> float:
    """Share of lucky neurons that Lemma 3 promises."""
    return (1 - epsilon - angle * M / pi) / M


def lemma_3(
    dimension: int = 10,
    M: int = 5,
    neurons: int = 1000,
    sigma: float = 0.1,
    tau: float = 0.0,
    samples: int = 200,
) -> Evidence:
    """Lucky neurons of Definition 2 at the start: what the lemma promises, and what there are.

    Parameters
    ----------
    dimension : int
        m_a.
    M, neurons : int
        Patterns, m.
    sigma, tau : float
        Error of the initial values, noise of a token.
    samples : int
        N, which epsilon_m depends on.
    """
    angle, epsilon = sigma + tau, least_epsilon(M, neurons, samples)
    promised = neurons * claimed_share(M, angle, epsilon)
    found = neurons * cap_share(dimension, angle)
    findings = (
        f"promised: at least {promised:.0f} of {neurons}",
        f"expected: {found:.2g} in {dimension} dimensions, {neurons * angle / pi:.0f} in a plane",
        f"at half the angle: {neurons * claimed_share(M, angle / 2, epsilon):.0f} promised, "
        f"{neurons * cap_share(dimension, angle / 2):.2g} expected",
    )
    case = (
        f"m_a = {dimension}, M = {M}, sigma + tau = {angle:g}, N = {samples}, epsilon_m = "
        f"{epsilon:.3g}; directions uniform on the sphere"
    )
    return Evidence(found >= promised, case, findings)


def scale_error(scale: float) -> float:
    """Least distance from a vector of length ``scale`` to one of length 1."""
    return abs(scale - 1.0)


def printed_start(noise: float = 0.01, sigma: float = 0.1, delta: float = 0.2) -> Evidence:
    """Assumption 1 for the initial weights that Section 4.1 prints.

    They map orthonormal patterns to orthogonal vectors of one length.

    Parameters
    ----------
    noise, sigma, delta : float
        c0 and the two errors.
    """
    rows = (("keys", delta**2 / noise**2, delta), ("values", sigma**2 / noise**2, sigma))
    findings = tuple(
        f"{name}: length {scale:g}, at least {scale_error(scale):g} from every unit vector, "
        f"{allowed:g} is allowed"
        for name, scale, allowed in rows
    )
    holds = all(scale_error(scale) <= allowed for _, scale, allowed in rows)
    return Evidence(holds, f"c0 = {noise:g}, sigma = {sigma:g}, delta = {delta:g}", findings)


def confusion_constant(
    shares: tuple[float, float], sigma: float, delta: float, tau: float = 0.0
) -> float:
    """The epsilon_S that Theorem 1 needs: its hypothesis on alpha_* is met where this is below 1/2.

    Parameters
    ----------
    shares : (alpha_*, alpha_#)
    sigma, delta, tau : float
        Errors of values, of keys and queries; noise.
    """
    relevant, confusion = shares
    left = 1 - sigma - tau
    return confusion * exp(delta + tau) / (relevant * left) if left > 0 else float("inf")
