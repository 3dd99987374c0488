r"""Linear attention in context (Zhang, Frei, Bartlett 2023; Zhang, Singh, Latham, Saxe 2025).

A prompt has N examples :math:`(x_n, y_n)` of a task :math:`y = w \cdot x`, :math:`w \sim N(0, I)`,
and a query :math:`x_q`; all inputs are from :math:`N(0, \Lambda)`. Heads h with value weights
:math:`u_h` and key-query matrices :math:`U_h` output :math:`\hat y = \sum_h u_h\, \beta^T U_h x_q`,
where :math:`\beta = \frac1N \sum y_n x_n`. Only moments of the law enter the risk: with :math:`M =
\sum_h u_h U_h` and :math:`\Gamma = (1 + \frac1N) \Lambda + \frac{\mathrm{tr} \Lambda}{N} I`,

.. math:: R = \tfrac12 \mathrm{tr} [\Lambda - 2 \Lambda^2 M + M^T \Lambda \Gamma M \Lambda],
   \qquad M^* = \Gamma^{-1}.

The risk is minimal at :math:`M = M^*`. With ``rank=0`` the model has one merged head with a matrix
U and a value weight u; from a multiple of I, training closes on u and one diagonal entry s of U per
eigenvalue of :math:`\Lambda`. The gradient flow conserves :math:`u^2 - |U|^2`; descent changes it
at order eta. At ``ratio`` 1 this difference starts at 0; for white inputs s and u then stay
proportional. With ``rank=R`` the model has ``heads`` separate heads, :math:`U_h = \sum_r k_{hr}
q_{hr}^T`; from a random start without equal entries, the risk falls from plateau to plateau.
Eigenvalues of :math:`\Lambda` are ``least + slope (D - 1 - d)``.

:D: dimension of the inputs
:N: number of examples in a prompt
:w0: size of the start
:ratio: u over the length of U at the start
:rank: rank of separate heads, 0 for the merged head
:heads: number of separate heads
:seed_0: seed of a random start
:least: smallest eigenvalue of the covariance of the inputs
:slope: difference of consecutive eigenvalues
:U: merged key-query matrix of each head
:k: keys of separate heads
:q: queries of separate heads
:u: value weights of the heads
:s: diagonal of U, one for each eigenvalue
:eigenvalues: eigenvalues of the covariance of the inputs, largest first
:half: :math:`s u` reaches half of its final value, for white inputs
"""

import numpy as np

SOURCE = "arXiv 2306.09927, 2501.16265"
eta, steps = 0.02, 2000
limits = (
    "1 <= D <= 316",
    "N >= 1",
    "0 <= rank <= D",
    "heads >= 1",
    "heads*rank*D <= 5000",
    "least > 0",
    "least + slope*(D - 1) > 0",
)


def start(D=4, w0=1e-3, ratio=1.0, rank=0, heads=4, seed_0=0):
    if not rank:
        return {"U": w0 / np.sqrt(D) * np.eye(D)[None], "u": np.full(1, ratio * w0)}
    draw = np.random.default_rng(seed_0).standard_normal
    k, q = w0 * draw((2, heads, rank, D))
    return {"k": k, "q": q, "u": w0 * draw(heads)}


def fixed(D, least=1.0, slope=0.0):
    return {"eigenvalues": least + slope * np.arange(D)[::-1]}


def risk(theta, xp, D, rank, N=31):
    U = xp.einsum("hrd,hre->hde", theta["k"], theta["q"]) if rank else theta["U"]
    M, Lambda = xp.einsum("h,hde->de", theta["u"], U), xp.diag(theta["eigenvalues"])
    Gamma = (1 + 1 / N) * Lambda + xp.trace(Lambda) / N * xp.eye(D)
    return xp.trace(Lambda - 2 * Lambda @ Lambda @ M + M.T @ Lambda @ Gamma @ M @ Lambda) / 2


def names(rank):
    return {} if rank else {"s": ("U", 0, 0, 0), "u": ("u", 0)}


def events(rank):
    return {} if rank else {"half": "2*s*u*(1 + (1 + D)/N) >= 1"}
