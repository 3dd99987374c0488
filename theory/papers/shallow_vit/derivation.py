"""Derivation, as a page: from the law of the counts to the recursions of training.

Every equation is computed from `recursion`, `symmetry` and `data_law`. The symbol ``P_ij`` is the
attention of a query of pattern j to all keys of pattern i. The paper is Li, Wang, Liu, Chen (2023).
"""

from __future__ import annotations

from typing import Any

import sympy
from sympy import Identity, MatrixSymbol

from theory.page import Entries, HandWritten, Page, Section, functions
from theory.papers.shallow_vit import data_law, recursion
from theory.papers.shallow_vit.model import W_O, contract
from theory.papers.shallow_vit.notation import NOTATION, PAIRS
from theory.papers.shallow_vit.recursion import RHO, B, E, H, K, Q, V

M, L, eta, margin, y, F, g = NOTATION.symbols("M L eta margin y F g")
alpha_star, alpha_confusion = NOTATION.symbols("alpha_star alpha_confusion")
n_star, n_confusion = NOTATION.symbols("n_star n_confusion")
i, j, k = sympy.symbols("i j k", integer=True, positive=True)
risk, total = sympy.symbols("R N", real=True)
rest = sympy.Symbol("n_rest", integer=True, nonnegative=True)
a, c, p, scores, hidden, h = map(Entries, ["a", "c", "P", "B", "U", "H"])
mean, w, gate, size = functions("mean w gate size")
IMAGES = {
    "gate": r"\operatorname{gate}", "mean": r"\operatorname{mean}", "odds": r"\mathrm{odds}",
    "n_rest": r"n_{\mathrm{rest}}", "n_other": r"n_\circ", "size": r"\#", "XY": "(XY)", "R": "R",
    "rho": r"\rho",
}  # fmt: skip
"""LaTeX of the symbols that the notation table does not contain."""


FROZEN = {"none": (), "attention": (K, Q), "values": (V,)}
"""Mapping from each value of the option `frozen` to the matrices on patterns that stay fixed."""


def page(data: str = data_law.DATA[0], loss: str = "hinge", frozen: str = "none") -> Page:
    """Page that derives the training dynamics.

    `data` is the law of the counts, one of `data_law.DATA`. `loss` is ``"hinge"`` or ``"linear"``.
    `frozen` is ``"none"``, ``"attention"`` or ``"values"``, and names the weights that stay fixed.
    The recursion of inner products is shown only if all weights are trained.
    """
    cost = -y * F if loss == "linear" else sympy.Max(margin - y * F, 0)
    law, network = _law(data), _network(cost)
    sections = [law, network, _slopes(cost), _patterns(FROZEN[frozen])]
    sections += [] if FROZEN[frozen] else [_inner(), _classes(), _masses(data)]
    sections.append(_odds())
    return Page(
        "Shallow ViT: gradient descent on patterns, in inner products, in 16 attention scalars",
        "Li, Wang, Liu, Chen (2023), tokens without noise; every equation is derived by "
        "computation.",
        tuple(sections),
        NOTATION.letters() | IMAGES,
        wrapped=True,
        model=(law, network, _step(frozen)),
    )


def count_law(data: str) -> tuple[tuple[sympy.Expr, sympy.Expr], ...]:
    """Equations for the counts c of a sample; the last is the joint probability of c and y = 1."""
    half = sympy.Rational(1, 2)
    ways = sympy.Product(sympy.factorial(c[k]), (k, 3, M))
    if data == "iid":
        each = ((1 - alpha_star - alpha_confusion) / (M - 2)) ** (L - c[1] - c[2])
        first = alpha_star ** c[1] * alpha_confusion ** c[2]
        second = alpha_star ** c[2] * alpha_confusion ** c[1]
        bare = sympy.factorial(L) / (sympy.factorial(c[1]) * sympy.factorial(c[2]) * ways)
        return ((w(c, y), half * bare * each * (first + second) / total),)
    rows = [
        (n_star, sympy.floor(alpha_star * L + half)),
        (n_confusion, sympy.floor(alpha_confusion * L + half)),
        (rest, L - n_star - n_confusion),
        (c[1], n_star),
        (c[2], n_confusion),
    ]
    if data == "fixed":
        return (*rows, (c[k], sympy.floor((rest + M - k) / (M - 2))), (w(c, y), half))
    return (*rows, (w(c, y), half * sympy.factorial(rest) / (ways * (M - 2) ** rest)))


LAWS = {
    "fixed": "The rest is split over patterns from 3 on as evenly as can be.",
    "fixed_disc": "The rest is drawn, each of the `M - 2` other patterns being equally likely.",
    "iid": (
        "Every token is label-relevant with chance `alpha_star`, confusion with "
        "`alpha_confusion`, else uniform; ties are rejected, and where confusion wins the two "
        "change names: `c_1 > c_2`, and ``N`` is the sum of what `w` has without it and without "
        "1/2, over all such `c`."
    ),
}
"""Mapping from each law to a sentence on the numbers of non-discriminative tokens."""


def _law(data: str) -> Section:
    words = (
        "The label ``y`` is 1 or -1, each with probability 1/2. A sample is a bag of `L` tokens, "
        "each one of the patterns ``mu_j``, and `c_j` of them are of pattern ``j``. At `y = 1` "
        "pattern 1 is label-relevant and pattern 2 confusion; at `y = -1` the two are exchanged, "
        f"and what is written here for `y = 1` holds with `c_1`, `c_2` exchanged. {LAWS[data]}",
    )
    everything = HandWritten("sum of w(c, y)*f over all c and both y", r"\sum_{c,\, y} w(c, y) f")
    rows = (*count_law(data), (mean(sympy.Symbol("f")), everything))
    letters = NOTATION.meanings("M L alpha_star alpha_confusion c")
    return Section(f"Data law ({data})", words, rows, (), letters)


def _network(cost: sympy.Expr) -> Section:
    words = (
        "Gradient descent with steps `eta` on `R` trains the four matrices; `a` is fixed. The "
        "softmax over keys sees a token through its pattern alone, so keys of one pattern are "
        "equal, and so are queries. All there is to know of the weights is what they do to the "
        "patterns (`V`, `K`, `Q`, the columns being patterns), and the network depends on `H` "
        "and `B` alone. A row per neuron:",
    )
    sample = recursion.of_sample()
    mu = recursion.MU
    rows = [
        (image, factors[0] * mu) for factors, image in recursion.IMAGES.items() if factors[1] == mu
    ]
    rows += [(H, W_O * V), (B, K.T * Q), (p[i, j], sample[p[i, j]])]
    rows += [(hidden[i, j], sympy.Sum(h[i, k] * p[k, j], (k, 1, M))), (F, sample[F])]
    rows.append((risk, mean(cost)))
    used = " margin" if margin in cost.free_symbols else ""
    letters = NOTATION.meanings(f"W_O W_V W_K W_Q m a{used} eta")
    return Section("Model, on patterns", words, tuple(rows), (), letters)


def _step(frozen: str) -> Section:
    """Show a step of gradient descent on the weights; its derivative is not evaluated."""
    moving = {"none": "W_O, W_V, W_K, W_Q", "attention": "W_O, W_V", "values": "W_O, W_K, W_Q"}
    step = HandWritten("W - eta*dR/dW", r"W - \eta \frac{\partial R}{\partial W}")
    words = (f"``W`` is any of `{moving[frozen]}`, a prime the next step.",)
    return Section("Gradient descent", words, ((sympy.Symbol("W'"), step),))


def _slopes(cost: sympy.Expr) -> Section:
    words = (
        "`D`, `E`, `rho`, `T` are the derivatives of the loss by `U`, `H`, `P` and `B` where no "
        "gate is on the edge; the counts only shift the arguments of the softmax. With output "
        "weights drawn for each position, `a_i*c_j` is their sum over the tokens of pattern `j`.",
    )
    step = HandWritten("1 if u > 0, else 0", r"1 \text{ if } u > 0 \text{, else } 0")
    slopes = recursion.pattern_slopes()
    by_output = sympy.diff(cost, F).replace(sympy.Heaviside, lambda edge, _: gate(edge))
    sample, D, T = recursion.of_sample(), Entries("D")[i, j], Entries("T")[i, j]
    rows = (
        (gate(sympy.Symbol("u")), step),
        (g, by_output / L),
        (D, sample[D]),
        (Entries("E")[i, j], mean(recursion.entrywise(slopes[E]))),
        (Entries("rho")[i, j], recursion.entrywise(slopes[RHO])),
        (T, sample[T]),
    )
    return Section("Derivatives of the loss", words, rows)


def _moved(steps: recursion.Steps) -> tuple[tuple[Any, Any], ...]:
    return tuple((MatrixSymbol(f"{name}'", *name.shape), step) for name, step in steps.items())


def _patterns(still: tuple[Any, ...]) -> Section:
    trained = {name: step for name, step in recursion.closure().items() if name not in still}
    words = (
        "By the chain rule through `H` and `B`; steps of `W_V`, `W_K`, `W_Q` are multiplied by "
        "the patterns. A prime is the next step; on the right stands the present one.",
    )
    return Section("Gradient descent on patterns", words, _moved(trained))


def _inner() -> Section:
    inner = [(name, factors[0] * factors[1]) for factors, name in recursion.INNER.items()]
    rows = (*[row for row in inner if row[0] not in (H, B)], *_moved(recursion.gram()))
    words = ("The inner products of what is trained close too: their steps, expanded.",)
    return Section("In inner products", words, rows)


def _classes() -> Section:
    """Show products of matrices that are constant on classes, and steps of the 16 scalars."""
    words = (
        "Let patterns be orthonormal, and neurons, start and law invariant under permutations of "
        "the patterns from 3 to `M` and under the exchange of 1 and 2 with `y` and `a` changing "
        "sign. Then `B` and `T` have one entry on each of six classes of pairs (``k`` and ``l`` "
        "are any two different patterns from 3 on), and `G_K` and `G_Q` on five, the classes 1k "
        "and k1 being one: 16 scalars for every `M > 3`, `size` entries each (unlisted ones are "
        "as for `B`), which move by themselves given `T`. The product XY of two such matrices, "
        "``X`` and ``Y``, is again one:",
    )
    sizes = recursion.class_sizes()
    rows: list[tuple[Any, ...]] = []
    for name in (B, recursion.G_K, recursion.G_Q):
        step = recursion.gram()[name].subs(recursion.GAMMA, Identity(M))
        rows += _moved({name: contract(step, {}, recursion.SYMMETRIC)})
    left, right = ({pair: sympy.Symbol(f"{x}_{pair}") for pair in PAIRS} for x in "XY")
    products = recursion.class_product(left, right)
    rows += [
        (sympy.Symbol(f"XY_{pair}"), recursion.by_products(products[pair], M)) for pair in PAIRS
    ]
    counts = [(NOTATION.symbol(f"{code}_{pair}"), code) for code in "B" for pair in PAIRS]
    counts += [(NOTATION.symbol("G_K_1k"), "G_K"), (NOTATION.symbol("G_Q_1k"), "G_Q")]
    rows += [(size(symbol), sympy.factor(sizes[symbol])) for symbol, _ in counts]
    return Section("Equal entries: 16 attention scalars", words, tuple(rows))


def _masses(data: str) -> Section:
    """Show the attention to label-relevant tokens as a function of the 16 scalars."""
    mark = "``" if data == "iid" else "`"
    words = (
        f"With {mark}n_star{mark} label-relevant and {mark}n_confusion{mark} confusion tokens, "
        "and ``n_other`` tokens of each other pattern, a query of the label-relevant, of the "
        "confusion and of another pattern pays to label-relevant tokens, from `P_ij`:",
    )
    rows = tuple((sympy.Symbol(name), mass) for name, mass in recursion.relevant_masses().items())
    return Section("Attention to label-relevant tokens", words, rows)


def _odds() -> Section:
    weight = {index: c[index] * sympy.exp(scores[index, j]) for index in (1, 2)}
    ratio = weight[1] / weight[2]
    mirrored = ratio.subs({c[1]: c[2], c[2]: c[1]}, simultaneous=True)
    words = (
        "`odds` is `P_1j/P_2j` of a sample at `y = 1` over that of its mirror image, whatever `B` "
        "is: for no `j` can attention to the confusion pattern vanish at both labels.",
    )
    rows = ((sympy.Symbol("odds"), sympy.simplify(ratio / mirrored)),)
    return Section("Odds identity", words, rows)
