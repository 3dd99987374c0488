"""Derivation, as a page: from the data law to the recursion on (alpha, gamma, rho).

Every equation is computed from `data_law`, `model` and `recursion`. The types of random sets are
numbered k = 1, ..., K, and the signal set is the type k = 0. The lemmas are 4.1 to 4.3 of Jelassi,
Sander, Li (2022).
"""

from __future__ import annotations

from typing import Any

import sympy

from theory.page import Entries, HandWritten, Page, Section, functions
from theory.papers.positional_attention import data_law, model, recursion
from theory.papers.positional_attention.notation import NOTATION

D, C, L, p, nu, scale, y = NOTATION.symbols("D C L p nu scale y")
alpha, beta, gamma, rho, eta = NOTATION.symbols("alpha beta gamma rho eta")
G, F, sig, v = NOTATION.symbols("G F sig v")
x, z, Z = NOTATION.symbols("x z Z")
u, kappa, theta, risk = sympy.symbols("u kappa theta R", real=True)
N = sympy.Symbol("N", positive=True)
i, j, k, r, K = sympy.symbols("i j k r K", integer=True)
A, S, X, a, b, c, m, P, sums = map(Entries, ["A", "S", "X", "a", "b", "c", "m", "P", "z"])
act, slope, preact, dO, h, dh, dF, n, W, E, inner = functions("act act' O dO h dh dF n W E inner")
COUNTS = {1: a[k], -1: b[k], 0: c[k]}
"""Mapping from each value x to the number of patches with this value in a set of type k."""
IMAGES = {
    "act": r"\operatorname{act}", "act'": r"\operatorname{act}'", "w": r"w^\star", "h": "h",
    "theta": r"\theta", "kappa": r"\kappa", "E": r"\mathbb{E}", "dO": r"\partial O",
    "dh": r"\partial h", "dF": r"\partial F",
}  # fmt: skip
"""LaTeX of the symbols that the notation table does not contain."""


def page(degree: int | None = None, random_sets: str = data_law.ANY) -> Page:
    """Page that derives the training dynamics.

    The degree of the activation is the symbol p if `degree` is None. The law of the random sets,
    `random_sets`, is ``"any"`` (Assumption 1) or ``"mixed"``.
    """
    law, network = _law(random_sets), _network()
    sections: tuple[Section, ...] = (
        law, network, _symmetry(), _attention(), _output(), _descent(), _leading_order()
    )  # fmt: skip
    defining: tuple[Section, ...] = (law, network, _step())
    if degree is not None:
        p_is = sympy.Integer(degree)
        sections, defining = (
            tuple(_at_degree(section, p_is) for section in group) for group in (sections, defining)
        )
    return Page(
        "Positional attention: gradient descent on the population risk in three scalars",
        "Jelassi, Sander, Li (2022), Lemmas 4.1 to 4.3; every equation is derived by computation.",
        sections,
        NOTATION.letters() | IMAGES,
        wrapped=True,
        model=defining,
    )


def _at_degree(section: Section, degree: sympy.Integer) -> Section:
    rows = tuple(
        tuple(side.subs(p, degree) if isinstance(side, sympy.Basic) else side for side in row)
        for row in section.equations
    )
    return Section(section.heading, section.sentences, rows, section.arrays, section.letters)


def _law(random_sets: str) -> Section:
    """Show the data law (Definition 2.1, Assumption 1) given the label y = 1."""
    types = {data_law.a: a[k], data_law.b: b[k], data_law.C - data_law.a - data_law.b: c[k]}
    chance = sympy.powsimp(data_law.type_probability(random_sets)).subs(types)
    mixed = random_sets == data_law.MIXED
    condition = ", and not all of one sign" if mixed else ""
    types_of_sets = (
        "all types but `a_k = C` and `b_k = C`" if mixed else "the `(C + 1)*(C + 2)/2` types"
    )
    sentences = (
        "The patches ``X_1``, ..., `X_D` of a sample form `L` disjoint sets of `C`, the same in "
        "every sample. The label ``y`` is 1 or -1 with probability 1/2; one set, drawn "
        "uniformly, is the signal set. Patch ``j`` has the component ``x_j`` along the feature "
        "``w``, a unit vector: `x_j = y` in the signal set; in the others, the random sets, 1, "
        f"-1, 0 with probability `q/2, q/2, 1 - q`, independently{condition}. The rest of `X_j` "
        "is centred noise orthogonal to `w`. `F` is odd in the sample: both labels have one "
        "risk, and we condition on `y = 1`. A set is of type ``k`` if ``a_k``, ``b_k``, ``c_k`` "
        f"of its patches are at 1, -1, 0; `m_k` sets are. Random sets have {types_of_sets} from 1 "
        "to ``K``, each with probability `P_k`, hence the numbers `m` with probability `W(m)`; "
        "type 0 is the signal set: `a_0 = C`, `m_0 = 1`.",
    )
    weight = sympy.Product(P[k] ** m[k] / sympy.factorial(m[k]), (k, 1, K))
    rows = ((L, D / C), (W(m), sympy.factorial(L - 1) * weight), (P[k], chance))
    letters = (
        *NOTATION.meanings("D C q"),
        ("m", "numbers `m_1`, ..., `m_K` of random sets of each type"),
    )
    return Section("Data law (Definition 2.1)", sentences, rows, letters=letters)


def _network() -> Section:
    attended = D * sympy.Sum(S[i, j] * inner(v, X[j]), (j, 1, D))
    everything = sympy.Sum(sympy.exp(scale * A[i, r]), (r, 1, D))
    rows = (
        (F, sympy.Sum(act(attended), (i, 1, D))),
        (S[i, j], sympy.exp(scale * A[i, j]) / everything),
        (act(u), model.activation(u)),
        (risk, E(sympy.log(1 + sympy.exp(-y * F)))),
    )
    words = ("`v` and `A` off its diagonal are trained, by gradient descent on the risk `R`.",)
    letters = NOTATION.meanings("A v p nu scale eta")
    return Section("Model (equation (T), problem (P))", words, rows, letters=letters)


def _symmetry() -> Section:
    words = (
        "The law is invariant under every permutation of the patches that maps sets onto sets, "
        "and `F` if patches, rows and columns of `A` are permuted alike. So from `v = alpha*w` "
        "and a diagonal `A`, entries of `A` inside a set stay equal, ``gamma``, and so do those "
        "between sets, ``rho``. The noise is centred and enters `F` through `<v, X_j>` alone: "
        "`v` stays along `w`, and `<v, X_j> = alpha*x_j` from here on. `n(theta)` entries share "
        "`theta`: the gradient by one of them is the derivative of `R` by `theta` over "
        "`n(theta)`.",
    )
    rows = tuple((n(state), count) for state, count in recursion.multiplicity().items())
    letters = (
        ("alpha", "component of `v` along `w`"),
        ("beta", "diagonal of `A`, never trained"),
        ("theta", "any of `alpha`, `gamma`, `rho`"),
    )
    return Section("Equal entries (Lemmas 4.1 and 4.2)", words, rows, letters=letters)


def _step() -> Section:
    """Show a step of gradient descent on the scalars; its derivative is not evaluated."""
    step = HandWritten(
        "theta - eta/n(theta)*dR/dtheta",
        r"\theta - \frac{\eta}{n(\theta)} \frac{\partial R}{\partial \theta}",
    )
    rows = (*_symmetry().equations, (sympy.Symbol("theta'"), step))
    words = (
        "`v` stays along the feature, `v = alpha*w`, and `A` keeps one entry inside all sets, "
        "``gamma``, and one between sets, ``rho`` (Lemmas 4.1 and 4.2). ``theta`` is any of the "
        "three, `n(theta)` the number of entries that it stands for, a prime the next step.",
    )
    return Section("Gradient descent, on three scalars", words, rows)


def _attention() -> Section:
    """Show the attention Lambda, Gamma, Xi and G, and their derivatives by gamma and rho."""
    weights = model.orbit_attention()
    total = sympy.fraction(sympy.together(weights[model.ATTENTION["beta"]]))[1]
    rows: list[tuple[Any, ...]] = [(N, total)]
    rows += [(entry, sympy.numer(weight) / N) for entry, weight in weights.items()]
    for entry in (*weights, G):
        value = model.own_attention() if entry == G else entry
        rows += [(G, value)] if entry == G else []
        for t in (gamma, rho):
            name = sympy.Symbol(f"d{entry.name}/d{t.name}", real=True)
            rows.append((name, recursion.through_softmax(value, entry, t)))
    words = (
        "A row of `S` holds `Lambda` on the diagonal, `Gamma` inside the set, `Xi` elsewhere.",
    )
    return Section("Attention, and its slopes", words, tuple(rows))


def _output() -> Section:
    words = (
        "A patch of value `x` in a set of sum `z` enters `F` as `act(O(x, z))`, a set of type "
        "`k` as `h(k)`. `E` is the sum over all numbers `m`, the types being drawn independently:",
    )
    share = sympy.Add(*[count * act(preact(value, sums[k])) for value, count in COUNTS.items()])
    everything = HandWritten(
        "sum of W(m)*f over all m_1, ..., m_K >= 0 with m_1 + ... + m_K = L - 1",
        r"\sum_{m_1, \dots, m_K \geq 0,\ m_1 + \dots + m_K = L - 1} W(m) f",
    )
    rows = (
        (sums[k], a[k] - b[k]),
        (Z, sympy.Sum(m[k] * sums[k], (k, 0, K))),
        (preact(x, z), model.preactivation()),
        (h(k), share),
        (F, sympy.Sum(m[k] * h(k), (k, 0, K))),
        (risk, E(sympy.log(1 + sympy.exp(-F)))),
        (E(sympy.Symbol("f")), everything),
    )
    return Section("Output and risk", words, rows)


def _descent() -> Section:
    """Show the recursion of the scalars with all derivatives evaluated."""
    rows: list[tuple[Any, ...]] = [(slope(u), sympy.powsimp(sympy.diff(model.activation(u), u)))]
    rows.append((dO(x, z, alpha), sympy.diff(model.preactivation(), alpha)))
    rows += [
        (dO(x, z, t), recursion.through_softmax(model.preactivation(), preact(x, z), t))
        for t in (gamma, rho)
    ]
    terms = [
        count * slope(preact(value, sums[k])) * dO(value, sums[k], theta)
        for value, count in COUNTS.items()
    ]
    rows.append((dh(k, theta), sympy.Add(*terms)))
    rows.append((dF(theta), sympy.Sum(m[k] * dh(k, theta), (k, 0, K))))
    risk_slope = sympy.diff(sympy.log(1 + sympy.exp(-F)), F)
    weight = sympy.simplify(-risk_slope)
    for t, count in recursion.multiplicity().items():
        stepped = sympy.Symbol(f"{t.name}'", real=True)
        rows.append((stepped, t + eta * E(dF(t) * weight) / count))
    words = ("`dO`, `dh`, `dF` are derivatives by their last argument; a prime is the next step.",)
    return Section("The recursion", words, tuple(rows))


def _leading_order() -> Section:
    share = recursion.leading_output().subs(nu, 0)
    size = recursion.increment_scale()
    steps = [eta * sympy.powsimp(recursion.leading_increment(t)) for t in (gamma, rho)]
    rows: list[tuple[Any, ...]] = [
        (sympy.Symbol("gamma' - gamma"), kappa * eta * size),
        (sympy.Symbol("|rho'| - |rho|"), kappa * eta * sympy.factor(alpha**p + size) / D, "<="),
        (F, share),
        (sympy.Symbol("gamma' - gamma"), steps[0]),
        (sympy.Symbol("rho' - rho"), steps[1]),
    ]
    words = (
        "Lemma 4.3 has the first two lines; ``kappa`` is polylogarithmic in the dimension of a "
        "patch. The next three are computed without the random sets (the terms from 1 to `K` of "
        "`Z` and of `F`) and without the linear part `nu`; ``sig`` is `E[1/(1 + exp(F))]`.",
    )
    return Section("Leading order, and Lemma 4.3", words, tuple(rows))
