r"""Adam on mini-batches, with records during training, and checkpoints that resume exactly.

The gradient g of the mean loss of a mini-batch moves the averages :math:`m \leftarrow b_1 m + (1 -
b_1) g` and :math:`v \leftarrow b_2 v + (1 - b_2) g^2`. Step t of the arrays theta is
:math:`- \eta_t\, \hat m / (\sqrt{\hat v} + 10^{-8})`, with rate eta_t, :math:`\hat m = m / (1 -
b_1^t)`, :math:`\hat v = v / (1 - b_2^t)`, :math:`b_1 = 0.9`, :math:`b_2 = 0.999` (Kingma and Ba
2015). The learning rate rises linearly during warm-up and is then constant.

The images and random masks of a step depend only on the seed and the step number, so a resumed
run ends bitwise equal to an uninterrupted run on the same machine with as many cores.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dynamics.cache import compiled_program, jax, programs_kept
from dynamics.images.networks import Convolution, Theta, Transformer
from dynamics.problem import FloatArray
from dynamics.training.checkpoint import Checkpoint
from dynamics.training.progress import interruption

CHUNK = 100
"""Maximum number of steps between two checks for a due checkpoint or an interruption."""
DECAY_1, DECAY_2, SMALL = 0.9, 0.999, 1e-8
AT_ONCE = 250
"""Maximum number of images that are evaluated at once."""


class Task(Protocol):
    """A loss to be trained; JAX compiles equal tasks once."""

    def loss(self, theta: Theta, batch: tuple[Any, ...], key: Any) -> Any:
        """Mean loss of a mini-batch; ``key`` is the JAX random key for draws in the loss."""


@dataclass(frozen=True)
class Classification:
    """Task of predicting the classes of images, with mean cross-entropy."""

    network: Transformer | Convolution

    def loss(self, theta: Theta, batch: tuple[Any, ...], key: Any) -> Any:
        """Mean cross-entropy; `batch` holds pixels, labels and optionally the patches to keep."""
        del key
        pixels, labels, *present = batch
        scores = jax.nn.log_softmax(self.network.outputs(theta, pixels, *present))
        return -jax.numpy.take_along_axis(scores, labels[:, None], axis=1).mean()


@dataclass(frozen=True)
class Adam:
    """Settings of training by Adam; the learning rate rises linearly to `eta` in `warmup` steps.

    An epoch uses each image once, in mini-batches of `batch` images; images that do not fill a last
    mini-batch are left out of the epoch.
    """

    eta: float = 2e-3
    batch: int = 32
    warmup: int = 100


@dataclass(frozen=True)
class Run:
    """A network along its training.

    `loss`, shape (records,), is the mean loss over the steps since the previous record, NaN at step
    0. `thetas` gives each trained array at all records, shape (records, ...).
    """

    steps: NDArray[np.int64]
    loss: FloatArray
    thetas: Mapping[str, NDArray[np.float32]]

    def theta(self, record: int = -1) -> dict[str, NDArray[np.float32]]:
        """Every trained array at one record."""
        return {name: array[record] for name, array in self.thetas.items()}


def train(
    task: Task,
    start: Theta,
    data: tuple[NDArray[Any], ...],
    records: Sequence[int],
    seed: int = 0,
    adam: Adam | None = None,
    checkpoint: Checkpoint | None = None,
    request: Mapping[str, Any] | None = None,
    progress: Callable[[int], Any] = lambda steps: None,
) -> Run:
    """Train a network on a task, up to the last of the ascending steps `records`.

    The arrays of `data` have one row per image, and a mini-batch takes the same rows of each. The
    checkpoint is written during training and at the end. `request` holds settings that identify
    the run, in addition to the arguments. Raises InvalidRequest if the checkpoint belongs to
    another run, and KeyboardInterrupt at Ctrl-C or SIGTERM, after the checkpoint is written.
    """
    adam = adam or Adam()
    recorded = [*map(int, records)]
    own = {"adam": asdict(adam), "seed": seed, "records": recorded, "jax": jax.__version__}
    request = json.loads(json.dumps({**(request or {}), **own}))
    stored = checkpoint.read(request) if checkpoint else None
    state = stored or _at_start(start, recorded)
    progress(state["step"])
    order = _Order(len(data[0]), min(adam.batch, len(data[0])), seed)
    advance, key = _compiled(), jax.random.key(seed)
    moments = {name: state[name] for name in ("theta", "first", "second")}
    with programs_kept(), interruption() as interrupted:
        while state["step"] < recorded[-1]:
            step = state["step"]
            stop = min([step + CHUNK, *(record for record in recorded if record > step)])
            rates = np.array([adam.eta, adam.warmup], np.float32)
            rows = order.rows(step, stop)
            # Gathering rows here makes the shapes in `advance` independent of the data's size.
            batches = tuple(array[rows] for array in data)
            moments, loss = advance(task, moments, batches, step, stop - step, rates, key)
            state["total"] += float(loss)
            state["step"] = stop
            progress(stop - step)
            if stop in recorded:
                last = state["steps"][-1] if state["steps"] else 0
                _record(state, moments["theta"], state["total"] / (stop - last))
            if checkpoint and (interrupted.is_set() or stop == recorded[-1] or checkpoint.due()):
                host = {part: _on_host(values) for part, values in moments.items()}
                checkpoint.write(request, {**state, **host})
            if interrupted.is_set():
                raise KeyboardInterrupt
    thetas = {name: np.stack([each[name] for each in state["thetas"]]) for name in start}
    return Run(np.array(state["steps"]), np.array(state["loss"]), thetas)


def _at_start(start: Theta, records: Sequence[int]) -> dict[str, Any]:
    theta = {name: np.asarray(array, np.float32) for name, array in start.items()}
    zeros = {name: np.zeros_like(array) for name, array in theta.items()}
    state = {"step": 0, "total": 0.0, "theta": theta, "first": zeros, "second": zeros}
    state |= {"steps": [], "loss": [], "thetas": []}
    if records[0] == 0:
        _record(state, theta, float("nan"))
    return state


def _record(state: dict[str, Any], theta: Theta, loss: float) -> None:
    state["steps"].append(state["step"])
    state["loss"].append(loss)
    state["thetas"].append(_on_host(theta))
    state["total"] = 0.0


def _on_host(theta: Theta) -> dict[str, NDArray[np.float32]]:
    return {name: np.asarray(array) for name, array in theta.items()}


class _Order:
    """Row numbers of the images of each step; every epoch orders all images anew at random."""

    def __init__(self, count: int, batch: int, seed: int) -> None:
        self.count, self.batch, self.seed = count, batch, seed
        self._epoch, self._order = -1, np.empty(0, np.int64)

    def rows(self, first: int, last: int) -> NDArray[np.int32]:
        """Rows of the steps `first` to `last` - 1, shape (CHUNK, batch), padded with zeros."""
        rows, steps = np.zeros((CHUNK, self.batch), np.int32), self.count // self.batch
        for step in range(first, last):
            epoch, at = divmod(step, steps)
            if epoch != self._epoch:
                random = np.random.default_rng([self.seed, 2, epoch])
                self._epoch, self._order = epoch, random.permutation(self.count)
            rows[step - first] = self._order[at * self.batch : (at + 1) * self.batch]
        return rows


@cache
def _compiled() -> Any:
    """Compiled loop over several steps, cached by JAX for each task and shape of the data."""

    def advance(
        task: Task, moments: Any, batches: Any, first: Any, count: Any, rates: Any, key: Any
    ) -> Any:
        def step(at: Any, carried: Any) -> Any:
            (theta, mean, square), total = carried
            batch = tuple(array[at] for array in batches)
            own = jax.random.fold_in(key, first + at)
            loss, slope = jax.value_and_grad(task.loss)(theta, batch, own)
            mean = {n: DECAY_1 * mean[n] + (1 - DECAY_1) * slope[n] for n in theta}
            square = {n: DECAY_2 * square[n] + (1 - DECAY_2) * slope[n] ** 2 for n in theta}
            done = (first + at + 1).astype(rates.dtype)
            rate = rates[0] * jax.numpy.minimum(1, done / jax.numpy.maximum(rates[1], 1))
            mean_part, square_part = 1 - DECAY_1**done, 1 - DECAY_2**done
            theta = {
                n: theta[n]
                - rate * (mean[n] / mean_part) / ((square[n] / square_part) ** 0.5 + SMALL)
                for n in theta
            }
            return (theta, mean, square), total + loss

        begin = (moments["theta"], moments["first"], moments["second"])
        zero = rates[0] * 0
        (theta, mean, square), total = jax.lax.fori_loop(0, count, step, (begin, zero))
        return {"theta": theta, "first": mean, "second": square}, total

    return compiled_program(advance, static_argnums=0)


@cache
def _evaluating() -> Any:
    def outputs(network: Any, theta: Theta, *data: Any) -> Any:
        return network.outputs(theta, *data)

    return compiled_program(outputs, static_argnums=0)


def correct(
    network: Transformer | Convolution, theta: Theta, data: tuple[NDArray[Any], ...]
) -> NDArray[np.bool_]:
    """Whether the predicted class of each image is correct, shape (N,).

    `data` holds pixels, labels and optionally the mask, shape (N, D), of the patches to keep.
    """
    pixels, labels, *present = data
    predicted, at_once = [], min(AT_ONCE, len(labels))
    for first in range(0, len(labels), AT_ONCE):
        # The last images are repeated, so that all evaluations have the same shape.
        rows = np.minimum(np.arange(first, first + at_once), len(labels) - 1)
        scores = _evaluating()(network, theta, pixels[rows], *(part[rows] for part in present))
        predicted.append(np.asarray(scores).argmax(axis=1))
    return np.asarray(np.concatenate(predicted)[: len(labels)] == labels)


def accuracy(
    network: Transformer | Convolution, theta: Theta, data: tuple[NDArray[Any], ...]
) -> float:
    """Share of correctly classified images."""
    return float(correct(network, theta, data).mean())
