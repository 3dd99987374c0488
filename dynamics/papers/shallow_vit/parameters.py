"""Parameters of the shallow Vision Transformer, validated on construction."""

from __future__ import annotations

from pydantic import model_validator
from pydantic.dataclasses import dataclass

from dynamics.parameter_fields import STRICT, number, refusing, whole, word
from dynamics.validation import refuse
from theory.papers.shallow_vit.data_law import DATA, Shares

WORDS = {
    "data": DATA,
    "output_weights": ("shared", "per_position"),
    "loss": ("hinge", "linear"),
    "frozen": ("none", "attention", "values"),
}
"""Name of a parameter -> allowed words."""
ROUNDING = 1e-9
"""The sum alpha_star + alpha_confusion may exceed 1 by this amount, which counts as rounding."""


@refusing
@dataclass(frozen=True, config=STRICT, kw_only=True)
class Parameters:
    """Data law, network, loss and start of the shallow Vision Transformer.

    Attributes
    ----------
    M : int
        Number of patterns; two of them decide the label.
    L : int
        Number of tokens of a sample.
    m : int
        Number of neurons.
    alpha_star, alpha_confusion : float
        Shares of tokens with the pattern of the label, and with that of the other label; a sample
        has n_star and n_confusion of them, rounded half up, with n_star > n_confusion.
    sigma, delta : float
        Errors of the start: lengths of W_V mu_j - p_j, and of W_K mu_j - q_j and W_Q mu_j - r_j.
    xi : float
        Standard deviation of the entries of W_O at the start.
    noise : float
        Standard deviation per coordinate of the noise of a token (c_0).
    data : str
        Law of the other tokens: ``"fixed"``: as even as possible; ``"fixed_disc"``: drawn
        uniformly; ``"iid"``: every token drawn with the shares, without ties.
    output_weights : str
        ``"shared"``: one sign a_i for each neuron; ``"per_position"``: one for each of its tokens.
    margin : float
        gamma, positive: the loss of a sample is max(gamma - y F, 0), reported divided by gamma.
    loss : str
        ``"hinge"``, or ``"linear"``: -y F.
    frozen : str
        Untrained weights: ``"none"``, ``"attention"`` (W_K, W_Q) or ``"values"`` (W_V).
    d : int
        Dimension of tokens, keys and values, at least M; default the larger of 10 and M.
    """

    M: whole(3) = 5  # type: ignore[valid-type]
    L: whole(1) = 50  # type: ignore[valid-type]
    m: whole(1) = 1000  # type: ignore[valid-type]
    alpha_star: number(above=0.0, at_most=1.0) = 0.5  # type: ignore[valid-type]
    alpha_confusion: number(at_least=0.0, at_most=1.0) = 0.05  # type: ignore[valid-type]
    sigma: number(at_least=0.0) = 0.1  # type: ignore[valid-type]
    delta: number(at_least=0.0) = 0.2  # type: ignore[valid-type]
    xi: number(at_least=0.0) = 0.01  # type: ignore[valid-type]
    noise: number(at_least=0.0) = 0.01  # type: ignore[valid-type]
    data: word(*WORDS["data"]) = "fixed"  # type: ignore[valid-type]
    output_weights: word(*WORDS["output_weights"]) = "shared"  # type: ignore[valid-type]
    margin: number(above=0.0) = 1.0  # type: ignore[valid-type]
    loss: word(*WORDS["loss"]) = "hinge"  # type: ignore[valid-type]
    frozen: word(*WORDS["frozen"]) = "none"  # type: ignore[valid-type]
    d: whole(1, optional=True) = None  # type: ignore[valid-type]

    @model_validator(mode="after")
    def _together(self) -> Parameters:
        if self.d is None:
            object.__setattr__(self, "d", max(10, self.M))
        if self.d < self.M:
            allowed = f"at least {self.M}, so that {self.M} patterns can be orthonormal"
            refuse("d", self.d, f"has no room for M={self.M} patterns", allowed, self.M)
        if self.alpha_star + self.alpha_confusion > 1.0 + ROUNDING:
            near = round(1.0 - self.alpha_star, 9)
            problem = f"and alpha_star={self.alpha_star:g} sum to more than 1"
            refuse("alpha_confusion", self.alpha_confusion, problem, f"0 to {near:g}", f"{near:g}")
        star, confusion = self.n_star, self.n_confusion
        if star <= confusion:
            problem = (
                f"gives {star} of {self.L} tokens, no strict majority over the {confusion} of "
                f"alpha_confusion={self.alpha_confusion:g}"
            )
            least = (confusion + 0.5) / self.L
            if least + self.alpha_confusion <= 1.0:
                refuse("alpha_star", self.alpha_star, problem, f"{least:g} or more", f"{least:g}")
            allowed = "more where alpha_confusion is less"
            refuse("alpha_star", self.alpha_star, problem, allowed, "0.5 with alpha_confusion=0")
        if star + confusion > self.L:
            problem = f"rounds, with alpha_star={self.alpha_star:g}, to more than L={self.L} tokens"
            near = f"{max(0.0, (self.L - star) / self.L):g}"
            refuse("alpha_confusion", self.alpha_confusion, problem, f"0 to {near}", near)
        return self

    @property
    def shares(self) -> Shares:
        """Law of the numbers of tokens of each pattern."""
        return Shares(self.M, self.L, self.alpha_star, self.alpha_confusion)

    @property
    def n_star(self) -> int:
        """Number of tokens of a sample with the pattern of its label."""
        return self.shares.n_star

    @property
    def n_confusion(self) -> int:
        """Number of tokens of a sample with the pattern of the other label."""
        return self.shares.n_confusion

    @property
    def output(self) -> str:
        """Convention of the output weights, in words."""
        shared = self.output_weights == "shared"
        return "one weight per neuron" + ("" if shared else " and position")
