r"""Masked image modelling learns which patches belong together (Huang, Wen, Chi, Liang 2024).

An image belongs to one of K clusters, drawn uniformly. A cluster partitions the P patches into
areas; area a has a feature :math:`v_a` and an independent latent :math:`z_a`, and each of its
patches q has the content :math:`X_q = z_a v_a`. A uniformly random set of patches is masked; the
token of a masked patch p contains only its position :math:`e_p`. One layer of softmax attention,
with weights :math:`u_{pq}` of patches q, reconstructs a masked patch p from the unmasked ones,

.. math::
   \hat X_p = \sum_{q\ \mathrm{unmasked}} u_{pq} X_q, \qquad
   u_p = \mathrm{softmax}_q\bigl(e_p^\top Q (e_q + 1\{q\ \mathrm{unmasked}\} X_q)\bigr),

and Q is trained on :math:`\tfrac12 \sum_{p\ \mathrm{masked}} |\hat X_p - X_p|^2` from Q = 0. The
entries of Q that move are correlations of a patch p with the position of a patch q, :math:`\Upsilon
= e_p^\top Q e_q`, and with a feature v, :math:`\Phi = e_p^\top Q v`. In Phase I a patch decouples
from the feature of the global area; in Phase II a patch learns to attend to its own area.

:P: number of patches
:C_global: patches of the global area, area 0
:C_local: patches of every local area
:masked: number of masked patches
:areas: area of each patch in place of the sizes, 0,0,1,1;0,1,1,0 for two clusters of four patches
:z: values of a latent, separated by commas
:odds: probabilities of the values of z, equal if empty
:Q: query-key matrix, positions first, then features
:Phi_m: correlation of a local patch with its own feature
:Phi_0: correlation of a local patch with the global feature
:*_Ups_*: correlation of a patch with positions
:*_Phi_*: correlation of a patch with features
:A_m: attention of a local patch to its own unmasked area, if it is not empty; 0 if it always is
:A_g: attention of a global patch to its own unmasked area, if it is not empty
:gap: loss of a local patch above its floor
:gap_g: loss of a global patch above its floor
:E0: training starts with Phase I, the global feature is decoupled first
:E2: the correlation with the own feature grows faster than that with the global feature falls
:E4: half of the attention of a local patch is on its own area
:E5: the loss of a local patch is within 1/1000 of its floor
"""

import itertools
import math

import numpy as np

from theory.papers.masked_image_modeling.images import ImageLaw
from theory.papers.masked_image_modeling.rows import Rows
from theory.papers.masked_image_modeling.symmetry import feature_offsets, one_cluster, row_types

SOURCE = "arXiv 2403.02233"
eta, steps = 1.0, 3000
events = {
    "E0": "abs(d_Phi_0) > abs(d_Phi_m)",
    "E2": "abs(d_Phi_0) <= abs(d_Phi_m)",
    "E4": "A_m >= 1/2",
    "E5": "gap <= 1/1000 after E4",
}
held_at = {"P": 12, "C_global": 8, "C_local": 2, "masked": 3}
limits = (
    "2 <= P <= 8192", "1 <= C_global", "C_global < P", "C_local >= 1", "1 <= masked", "masked < P",
)  # fmt: skip


def images(P, C_global, C_local, areas="", masked=1, z="1", odds=""):
    """Law of the images: masks, latents, and partitions from area ids or from sizes."""
    words = [[int(area) for area in row.split(",")] for row in areas.split(";") if areas]
    values = tuple(float(value) for value in z.split(","))
    chances = tuple(float(p) for p in odds.split(",")) if odds else (1 / len(values),) * len(values)
    partitions = np.array(words) if areas else one_cluster(P, C_global, C_local)
    return ImageLaw(partitions, masked, values, chances)


def rows_of(*drawn):
    """Types of rows of Q (rows of a type share all scalars), from the arguments of `images`."""
    made = images(*drawn)
    if not made.area_ids.any():
        raise ValueError("no patch is in a local area, of number 1 or more")
    return Rows(made, row_types(made.area_ids))


def start(P=256, C_global=128, C_local=4, areas=""):
    partitions = images(P, C_global, C_local, areas).area_ids
    size = partitions.shape[1] + feature_offsets(partitions)[-1]
    return {"Q": np.zeros((size, size))}


def fixed(P, C_global, C_local, areas, masked):
    """Orthonormal basis, and the local and the global patch that `observe` reports."""
    rows = rows_of(P, C_global, C_local, areas, masked)
    watched = rows.references[2:]
    patches = [rows.types[row].patches[0] for row in watched]
    basis = np.eye(len(start(P, C_global, C_local, areas)["Q"]))
    size = rows.parameters.P
    chance = masked / size * np.where(rows.mates[watched] > 0, rows.mates[watched], 1)
    return {"basis": basis, "watched": np.eye(size)[patches], "chance": chance}


def law(P, C_global, C_local, areas, masked=128, z="1", odds=""):
    """Every masked image with its probability."""
    drawn = images(P, C_global, C_local, areas, masked, z, odds)
    images_alike = drawn.K * math.comb(drawn.P, masked)
    for area, first in zip(drawn.area_ids, feature_offsets(drawn.area_ids)):
        for latents in itertools.product(zip(drawn.z, drawn.odds), repeat=area.max() + 1):
            values, chances = np.array(latents).T
            chance = math.prod(chances) * (1 / images_alike)
            for mask in itertools.combinations(range(drawn.P), masked):
                sample = {"feature": first + area, "z": values[area], "masked": np.array(mask)}
                yield chance, sample


def of_masked(theta, sample, xp):
    """Loss, floor of the loss, own-area attention and visibility of each masked patch."""
    basis, masked, size = theta["basis"], sample["masked"], len(sample["z"])
    queries = (basis[:size] @ theta["Q"] @ basis.T)[masked]
    area = xp.eye(len(basis) - size)[sample["feature"]]
    content = sample["z"][:, None] * area
    unmasked = 1 - xp.sum(xp.eye(size)[masked], axis=0)
    shown = unmasked[:, None] * content
    attention = xp.softmax(queries[:, :size] + queries[:, size:] @ shown.T)
    answer = attention @ shown
    in_sight = area[masked] @ (unmasked @ area) > 0
    return {
        "loss": xp.sum((answer - content[masked]) ** 2, axis=1) / 2,
        "floor": xp.where(in_sight, 0, sample["z"][masked] ** 2 / 2),
        "own": xp.sum(answer * area[masked], axis=1) / sample["z"][masked],
        "in_sight": 1.0 * in_sight,
    }


def loss(theta, sample, xp):
    """Sum of the losses of the masked patches of one image."""
    return xp.sum(of_masked(theta, sample, xp)["loss"])


def observe(theta, sample, xp):
    """Attention to the own area and loss minus its floor, for a local and for a global patch."""
    part = of_masked(theta, sample, xp)
    watched = theta["watched"][:, sample["masked"]]
    attention = watched @ part["own"] / theta["chance"]
    gap = watched @ (part["loss"] - part["floor"])
    return {"A_m": attention[0], "gap": gap[0], "A_g": attention[1], "gap_g": gap[1]}


def names(P, C_global, C_local, areas):
    """Name of each scalar -> first entry of Q that has the value of the scalar."""
    rows = rows_of(P, C_global, C_local, areas)
    entries = [
        ("Q", row.patches[0], first + list(classes[0]).index(k))
        for row in rows.types
        for classes, first in ((row.ups_of, 0), (row.phi_of, rows.parameters.P))
        for k in range(classes.max() + 1)
    ]
    scalars = dict(zip(rows.references, ("Phi_m", "Phi_0")))
    return {scalars.get(k, name): entries[k] for k, name in enumerate(rows.scalars)}


def sizes(P, C_global, C_local, areas):
    """Number of entries of Q that share each scalar."""
    rows = rows_of(P, C_global, C_local, areas)
    many = np.repeat(rows.many, np.diff(rows.starts)) * rows.sizes
    return dict(zip(names(P, C_global, C_local, areas), many.astype(int)))


def hypergeometric(sizes, unmasked):
    """Yield numbers of unmasked patches in classes of the given sizes, with their probability."""
    for some in itertools.product(*(range(size + 1) for size in sizes[:-1])):
        h = (*some, unmasked - sum(some))
        if 0 <= h[-1] <= sizes[-1]:
            yield math.prod(map(math.comb, sizes, h)) / math.comb(sum(sizes), unmasked), h


def areas_of(cluster, merging):
    """Yield (index of Phi, number of merged areas, [(index of Ups, patches) of each class])."""
    for area in cluster:
        # Ups number 0 is the correlation of the masked patch, in the first area, with itself.
        cells = [(ups, size) for ups, size in area.cells if ups > 0]
        if merging and len(cells) == 1:
            ((ups, size),), many = cells, area.multiplicity
            yield area.phi, many, [(ups, size * many)]
        else:
            yield from [(area.phi, 1, cells)] * area.multiplicity


def squares(copies, size, h):
    """Expected sum of squares of the shares of equal areas in the attention to these areas.

    The ``copies`` equal areas have ``size`` patches in total; h of these are unmasked.
    """
    if copies == 1 or h == 0:
        return 1.0
    return 1 / copies + (1 - 1 / copies) * (size - h) / ((size - 1) * h)


def configurations(P, C_global, C_local, areas, masked, z, odds):
    """Yield numbers of unmasked patches per class, and latents, given that a patch is masked.

    A class is a set of patches of one area with the same Ups. All types of rows and all clusters
    are enumerated. If z has one value, equal areas of one class each are merged; they enter through
    their total count and the expected sum of their squared attentions. Configurations of
    probability below 1e-32 are dropped.
    """
    rows = rows_of(P, C_global, C_local, areas, masked, z, odds)
    drawn, merging = rows.parameters, len(rows.parameters.z) == 1
    blocks = [
        (number, [*areas_of(cluster, merging)])
        for number, row in enumerate(rows.types)
        for cluster in row.clusters
    ]
    width = max(len(parts) + sum(len(cells) for *_, cells in parts) for _, parts in blocks)

    def wide(values, rest):
        return np.array([*values, *[rest] * (width - len(values))])

    for number, parts in blocks:
        first, many = rows.starts[number], rows.many[number]
        first_phi = first + len(rows.types[number].ups_names)
        classes = [(k, *cell) for k, (*_, cells) in enumerate(parts) for cell in cells]
        area, ups, size = zip(*classes)
        watched = (rows.references[2:] == number) * drawn.P / many
        fixed_part = {
            "self": first,
            "ups": wide([first + k for k in ups], 0),
            "phi": wide([first_phi + parts[k][0] for k in area], 0),
            "area": wide(area, 0),
            "A": watched / (rows.mates[number] or 1),
            "gap": watched * masked / drawn.P,
        }
        for chance, h in hypergeometric(size, drawn.P - masked):
            if chance < 1e-32:
                continue
            factor = np.ones(len(parts))
            for k, n, shown in zip(area, size, h):
                factor[k] = squares(parts[k][1], n, shown)
            seen = {
                "open": wide(h, 0).astype(float),
                "closed": wide(np.subtract(size, h), 0).astype(float),
                "factor": wide(factor, 1.0),
            }
            for latents in itertools.product(zip(drawn.z, drawn.odds), repeat=len(parts)):
                values, chances = zip(*latents)
                weight = many / (drawn.P * drawn.K) * chance * math.prod(chances)
                yield weight, {**fixed_part, **seen, "z": wide(values, 1.0)}


def of_configuration(scalars, sample, xp, order):
    """Loss of a masked patch, the floor of this loss, and attention to the patch's own area."""
    state, z, width = xp.stack([scalars[name] for name in order]), sample["z"], len(sample["z"])
    ups = state[sample["ups"]]
    features = z[sample["area"]] * state[sample["phi"]]
    unmasked, hidden = (xp.log(sample[name]) for name in ("open", "closed"))
    scores = xp.concatenate([ups + features + unmasked, ups + hidden, state[sample["self"]][None]])
    attention = xp.softmax(scores)[:width] @ xp.eye(width)[sample["area"]]
    others = z[1:] ** 2 * sample["factor"][1:] * attention[1:] ** 2
    own = attention[0]
    in_sight = sample["open"] @ (sample["area"] == 0) > 0
    return {
        "loss": (z[0] ** 2 * (1 - own) ** 2 + xp.sum(others)) / 2,
        "floor": xp.where(in_sight, 0, z[0] ** 2 / 2),
        "own": own,
    }


def reduced(scalars, sample, xp, P, C_global, C_local, areas, masked):
    """Loss of one configuration, multiplied by the number of masked patches."""
    order = names(P, C_global, C_local, areas)
    return masked * of_configuration(scalars, sample, xp, order)["loss"]


def reduced_observe(scalars, sample, xp, P, C_global, C_local, areas):
    """Observables of `observe` for one configuration."""
    part = of_configuration(scalars, sample, xp, names(P, C_global, C_local, areas))
    attention = sample["A"] * part["own"]
    gap = sample["gap"] * (part["loss"] - part["floor"])
    return {"A_m": attention[0], "gap": gap[0], "A_g": attention[1], "gap_g": gap[1]}
