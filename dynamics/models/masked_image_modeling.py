r"""Masked image modelling learns which patches belong together (Huang, Wen, Chi, Liang 2024).

An image is of one of K clusters, drawn uniformly. A cluster partitions the P patches into areas;
area a has a feature :math:`v_a` and a latent :math:`z_a`, drawn independently, and each of its
patches shows :math:`z_a v_a`. A uniform set of patches is masked: these show nothing but their
position :math:`e_p`. One layer of softmax attention fills them in from the unmasked ones,

.. math::
   \hat X_p = \sum_{q\ \mathrm{unmasked}} u_{pq} X_q, \qquad
   u_p = \mathrm{softmax}_q\bigl(e_p^\top Q (e_q + 1\{q\ \mathrm{unmasked}\} X_q)\bigr),

and Q is trained on :math:`\tfrac12 \sum_{p\ \mathrm{masked}} |\hat X_p - X_p|^2` from Q = 0. The
entries that move are correlations of a patch with positions, :math:`\Upsilon = e_p^\top Q e_q`, and
with features, :math:`\Phi = e_p^\top Q v`. Phase I: the global feature is decoupled first. Phase
II: a patch attends to its own area.

:P: number of patches
:C_global: patches of the global area, area 0
:C_local: patches of every other area, a local one
:masked: number of masked patches
:areas: area of each patch in place of the sizes, 0,0,1,1;0,1,1,0 for two clusters of four patches
:z: values of a latent, separated by commas
:odds: their probabilities; equal where empty
:Q: query-key matrix, positions first, then features
:Phi_m: correlation of a local patch with its own feature
:Phi_0: correlation of a local patch with the global feature
:*_Ups_*: correlation of a patch with positions
:*_Phi_*: correlation of a patch with features
:A_m: attention of a local patch to its own unmasked area, if it is not empty
:A_g: attention of a global patch to its own unmasked area, if it is not empty
:gap: loss of a local patch above its floor
:gap_g: loss of a global patch above its floor
:E0: training starts with Phase I, the global feature is decoupled first
:E2: the own feature grows faster than the global one falls
:E4: half of the attention of a local patch is on its own area
:E5: the loss of a local patch is within 1/1000 of its floor
"""

import itertools

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

limits = ("P >= 2", "1 <= C_global", "C_local >= 1", "1 <= masked")


def images(P, C_global, C_local, areas="", masked=1, z="1", odds=""):
    """What images are drawn from, the partitions by words or by sizes."""
    words = [[int(area) for area in row.split(",")] for row in areas.split(";") if areas]
    values = tuple(float(value) for value in z.split(","))
    chances = tuple(float(p) for p in odds.split(",")) if odds else (1 / len(values),) * len(values)
    partitions = np.array(words) if areas else one_cluster(P, C_global, C_local)
    return ImageLaw(partitions, masked, values, chances)


def start(P=12, C_global=8, C_local=2, areas=""):
    """Trained arrays at step 0.

    Parameters
    ----------
    P, C_global, C_local : int
    areas : str
    """
    partitions = images(P, C_global, C_local, areas).area_ids
    size = partitions.shape[1] + feature_offsets(partitions)[-1]
    return {"Q": np.zeros((size, size))}


def fixed(P, C_global, C_local, areas, masked):
    """Orthonormal rows of positions and features, and the patches that are watched.

    Parameters
    ----------
    P, C_global, C_local, masked : int
    areas : str
    """
    drawn = images(P, C_global, C_local, areas, masked)
    rows = Rows(drawn, row_types(drawn.area_ids))
    watched = rows.references[2:]
    patches = [rows.types[row].patches[0] for row in watched]
    basis = np.eye(len(start(P, C_global, C_local, areas)["Q"]))
    chance = masked / drawn.P * rows.mates[watched]
    return {"basis": basis, "watched": np.eye(drawn.P)[patches], "chance": chance}


def law(P, C_global, C_local, areas, masked=3, z="1", odds=""):
    """Every masked image with its probability.

    Parameters
    ----------
    P, C_global, C_local, masked : int
    areas, z, odds : str
    """
    drawn = images(P, C_global, C_local, areas, masked, z, odds)
    masks = [*itertools.combinations(range(drawn.P), masked)]
    for area, first in zip(drawn.area_ids, feature_offsets(drawn.area_ids)):
        for latents in itertools.product(zip(drawn.z, drawn.odds), repeat=area.max() + 1):
            values, chances = np.array(latents).T
            for mask in masks:
                sample = {"feature": first + area, "z": values[area], "masked": np.array(mask)}
                yield np.prod(chances) / (drawn.K * len(masks)), sample


def of_masked(theta, sample, xp):
    """Loss of each masked patch, its floor, attention to its area, and whether that is in sight.

    Parameters
    ----------
    theta : dict of arrays
    sample : dict
        ``feature`` and ``z`` of each patch, and which patches are ``masked``.
    xp : array namespace
    """
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
    """Loss of one masked image.

    Parameters
    ----------
    theta : dict of arrays
    sample : dict
        As for `of_masked`.
    xp : array namespace
    """
    return xp.sum(of_masked(theta, sample, xp)["loss"])


def observe(theta, sample, xp):
    """Attention to the own area and loss above the floor, of a local and of a global patch.

    Parameters
    ----------
    theta : dict of arrays
    sample : dict
        As for `of_masked`.
    xp : array namespace
    """
    part = of_masked(theta, sample, xp)
    watched = theta["watched"][:, sample["masked"]]
    attention = watched @ part["own"] / theta["chance"]
    gap = watched @ (part["loss"] - part["floor"])
    return {"A_m": attention[0], "gap": gap[0], "A_g": attention[1], "gap_g": gap[1]}


def names(P, C_global, C_local, areas):
    """An entry of each scalar: correlations of the first row of each type.

    Parameters
    ----------
    P, C_global, C_local : int
    areas : str
    """
    drawn = images(P, C_global, C_local, areas)
    rows = Rows(drawn, row_types(drawn.area_ids))
    entries = [
        ("Q", row.patches[0], first + list(classes[0]).index(k))
        for row in rows.types
        for classes, first in ((row.ups_of, 0), (row.phi_of, drawn.P))
        for k in range(classes.max() + 1)
    ]
    names = [*rows.scalars]
    for index, name in zip(rows.references, ("Phi_m", "Phi_0")):
        names[index] = name
    return dict(zip(names, entries))
