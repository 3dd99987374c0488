r"""A committee of erf neurons learns another one (Saad, Solla 1995; Goldt et al. 2019).

The student :math:`\frac1n \sum_i g(w_i \cdot x / \sqrt d)` with rows :math:`w_i` learns the teacher
:math:`\frac1k \sum_r g(v_r \cdot x / \sqrt d)` with rows :math:`v_r` from Gaussian inputs x by
squared error; :math:`g(u) = \mathrm{erf}(u / \sqrt 2)`. The teacher's rows are orthogonal, of norm
:math:`\sqrt d`; only the student is trained. The population risk is a function of the overlaps
:math:`C = \mathrm{rows}\, \mathrm{rows}^T / d` of all rows, the student's first, and weights a:

.. math:: \epsilon = \frac1\pi \sum_{ij} a_i a_j \arcsin
   \frac{C_{ij}}{\sqrt{(1 + C_{ii})(1 + C_{jj})}}, \qquad a = (1/n, \dots, -1/k, \dots).

The gradient of a student row is a combination of all rows, so training stays in a linear space of
n(n + k) directions for every :math:`d \ge n + k`. The overlaps Q between student rows and R between
student and teacher rows satisfy closed equations in which the dimension d only rescales time. A run
at d = n + k from rows with the same overlaps therefore gives the run at any d, including infinity
(``dynamics.rows_with_overlaps``).

:n: neurons of the student
:k: neurons of the teacher
:d: dimension of the inputs
:W: weights of the student
:V: weights of the teacher
:W_*: weight of a neuron of the student, by its input
:Q_*: overlap of two neurons of the student
:R_*: overlap of a neuron of the student with a neuron of the teacher
:T_special: the risk is half of that of the best student with equal neurons
"""

import numpy as np

SOURCE = "Phys. Rev. E 52, 4225; arXiv 1906.08632"
eta, steps = 1.0, 3000
SPREAD = 0.5
limits = ("1 <= n <= 20", "1 <= k <= 20", "d >= k", "n*d <= 5000")


def start(n=2, d=6):
    return {"W": SPREAD * np.random.default_rng(0).standard_normal((n, d))}


def fixed(d, k=2):
    return {"V": np.sqrt(d) * np.eye(k, d)}


def overlaps(theta, xp, d):
    """Overlaps of all rows, shape (n + k, n + k); student rows come first."""
    rows = xp.concatenate([theta["W"], theta["V"]])
    return rows @ rows.T / d


def risk(theta, xp, n, k, d):
    C = overlaps(theta, xp, d)
    size = xp.sqrt(1 + xp.diag(C))
    a = np.repeat([1 / n, -1 / k], [n, k])
    return a @ xp.arcsin(C / (size[:, None] * size)) @ a / np.pi


def order_parameters(C, n):
    """Overlaps of the student with itself and with the teacher, by name, from the matrix C."""
    Q = {f"Q_{i + 1}_{j + 1}": C[i, j] for i in range(n) for j in range(i, n)}
    return Q | {f"R_{i + 1}_{r + 1}": C[i, n + r] for i in range(n) for r in range(len(C) - n)}


def observables(theta, xp, n, d):
    return order_parameters(overlaps(theta, xp, d), n)


def events(k):
    plateau = 1 / (6 * k) - np.arcsin(1 / (2 * k)) / np.pi
    return {"T_special": f"risk <= {plateau / 2}"} if k > 1 else {}
