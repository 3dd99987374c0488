"""Data sets of images: sets shipped with packages, and folders in the layout of torchvision.

============== ============================================ =================================
name or folder source                                       images
============== ============================================ =================================
``digits``     scikit-learn                                 1797 of 8 x 8, no test set
``fashion``    Debian's package ``dataset-fashion-mnist``   60,000 + 10,000 of 28 x 28
a folder       ``train-images-idx3-ubyte`` and so on, also  as in the files
               ``.gz``, or below ``MNIST/raw``
a folder       ``cifar-10-batches-py/data_batch_1`` ...,    50,000 + 10,000 of 32 x 32 x 3
               ``cifar-100-python/train``
a folder       ``train_32x32.mat``, ``test_32x32.mat``      SVHN: 73,257 + 26,032
============== ============================================ =================================
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynamics.images import require
from dynamics.images.formats import read_cifar, read_idx
from dynamics.validation import InvalidRequest, integer, path_of, refuse

Floats = NDArray[np.float32]
Labels = NDArray[np.int32]

FASHION = Path("/usr/share/datasets/fashion-mnist")
"""Folder of the files of Debian's package ``dataset-fashion-mnist``."""
SHIPPED = ("digits", "fashion")
TEST_DIGITS = 500
"""Number of test images per 1797 images, if a data set has no test set of its own."""
TRAIN, TESTS = 10_000, 2_000
"""Default upper limits on the numbers of training and of test images."""


class Part(NamedTuple):
    """Images with their class labels: shapes (N, height, width, channels) and (N,)."""

    pixels: NDArray[Any]
    labels: Labels


@dataclass(frozen=True)
class Images:
    """A data set of images; without a `test` part, test images are drawn from `train`."""

    name: str
    train: Part
    test: Part | None = None

    @property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.train.labels.max()) + 1

    @property
    def side(self) -> int:
        """Height of an image in pixels, equal to its width."""
        return int(self.train.pixels.shape[1])

    @property
    def channels(self) -> int:
        """Number of channels of a pixel."""
        return int(self.train.pixels.shape[3])

    def digest(self) -> str:
        """Hash of the pixels and labels, to identify the data set."""
        content = hashlib.sha256()
        for part in filter(None, (self.train, self.test)):
            content.update(np.ascontiguousarray(part.pixels).tobytes())
            content.update(part.labels.tobytes())
        return content.hexdigest()[:12]


class Split(NamedTuple):
    """Training and test images, standardized by mean and deviation of the training pixels."""

    pixels: Floats
    labels: Labels
    test_pixels: Floats
    test_labels: Labels


def load(data: str | os.PathLike[str] = "digits") -> Images:
    """Load the data set ``"digits"`` or ``"fashion"``, or a folder of MNIST, CIFAR or SVHN files.

    Raises InvalidRequest if the data set is not installed, the folder has no files of a known data
    set, or a file is damaged.
    """
    if data == "digits":
        bunch = require("sklearn.datasets", "scikit-learn").load_digits()
        return _images("digits", _part(bunch.images[..., None], bunch.target, "digits"))
    folder = path_of("data", FASHION if data == "fashion" else data)
    if data == "fashion" and not folder.is_dir():
        raise InvalidRequest(
            "data='fashion' needs the files of Debian's package dataset-fashion-mnist in "
            f"{str(FASHION)!r}; install it, or name a folder"
        )
    if not folder.is_dir():
        nearest = "digits"
        refuse("data", str(data), "is not a folder", f"{', '.join(SHIPPED)}, or a folder", nearest)
    for read in (_idx, _cifar, _svhn):
        images = read(folder)
        if images is not None:
            return images
    allowed = "train-images-idx3-ubyte[.gz], cifar-10-batches-py, cifar-100-python or train_32x32"
    raise InvalidRequest(f"data={str(data)!r} has none of {allowed}.mat; nearest: digits")


def split(images: Images, samples: int = 0, tests: int = 0, seed: int = 0) -> Split:
    """Draw disjoint training and test images with a seed, and standardize each channel.

    `samples` and `tests` are the numbers of training and of test images; 0 means all images, but
    not more than 10,000 and 2,000. Raises InvalidRequest if the data set has too few images.
    """
    random = np.random.default_rng([seed, 0])
    order = random.permutation(len(images.train.labels))
    if images.test is None:
        tests = tests or min(TESTS, max(1, len(order) * TEST_DIGITS // 1797))
        tests = integer("tests", tests, 1, len(order) - 1)
        order, rest = order[:-tests], order[-tests:]
        source = images.train
    else:
        tests = integer("tests", tests or min(TESTS, len(images.test.labels)), 1, 10**6)
        tests = integer("tests", tests, 1, len(images.test.labels))
        rest, source = random.permutation(len(images.test.labels))[:tests], images.test
    samples = integer("samples", samples or min(TRAIN, len(order)), 1, len(order))
    order = order[:samples]
    pixels = images.train.pixels[order].astype(np.float32)
    mean, spread = pixels.mean(axis=(0, 1, 2)), pixels.std(axis=(0, 1, 2))
    spread = np.where(spread > 0, spread, 1).astype(np.float32)
    return Split(
        (pixels - mean) / spread,
        images.train.labels[order],
        (source.pixels[rest].astype(np.float32) - mean) / spread,
        source.labels[rest],
    )


def shuffled(pixels: Floats, order: NDArray[np.int64], size: int) -> Floats:
    """Permute blocks of size x size pixels: block k of the result is block order[k].

    Blocks are numbered row by row, and `size` divides height and width.

    Examples
    --------
    >>> image = np.arange(4.0).reshape(1, 2, 2, 1)
    >>> shuffled(image, np.array([3, 2, 1, 0]), 1).ravel().tolist()
    [3.0, 2.0, 1.0, 0.0]
    """
    count, height, width, channels = pixels.shape
    rows, columns = height // size, width // size
    blocks = pixels.reshape(count, rows, size, columns, size, channels).swapaxes(2, 3)
    blocks = blocks.reshape(count, rows * columns, size, size, channels)[:, order]
    blocks = blocks.reshape(count, rows, columns, size, size, channels).swapaxes(2, 3)
    return blocks.reshape(pixels.shape)


def _part(pixels: NDArray[Any], labels: Any, name: str) -> Part:
    """Images with labels, after a check of their shapes and values."""
    array = np.asarray(labels)
    shapes = f"pixels of shape {pixels.shape} and labels of shape {array.shape}"
    problem = ""
    if pixels.ndim != 4 or array.ndim != 1 or array.dtype.kind not in "iu" or not array.size:
        problem = f"holds {shapes}; each image needs one label"
    elif len(pixels) != len(array):
        problem = f"has {len(pixels)} images and {len(array)} labels"
    elif pixels.shape[1] != pixels.shape[2]:
        problem = f"has images of {pixels.shape[1:3]} pixels, which are not square"
    elif array.min() < 0 or array.max() >= 1000:
        problem = f"has the label {array.max()}; labels can be 0 to 999"
    if problem:
        raise InvalidRequest(f"data={name!r} {problem}")
    return Part(pixels, array.astype(np.int32))


def _images(name: str, train: Part, test: Part | None = None) -> Images:
    if test is not None and test.pixels.shape[1:] != train.pixels.shape[1:]:
        raise InvalidRequest(
            f"data={name!r}: training images have the shape {train.pixels.shape[1:]}, test images "
            f"{test.pixels.shape[1:]}"
        )
    return Images(name, train, test)


def _both(
    folder: Path, name: str, files: tuple[Path | None, ...], read: Callable[[Path], Part]
) -> Images | None:
    """Data set of a training and a test file, or None if both files are missing."""
    train, test = files
    if train is None and test is None:
        return None
    if train is None or test is None:
        absent = "test" if test is None else "training"
        raise InvalidRequest(f"data={str(folder)!r} has no {absent} images; it needs both")
    return _images(name, read(train), read(test))


def _file(*paths: Path) -> Path | None:
    return next((path for path in paths if path.is_file()), None)


def _idx(folder: Path) -> Images | None:
    """Read MNIST-like files in a folder or in torchvision's subfolders, or return None."""
    below = [folder / name / "raw" for name in ("MNIST", "FashionMNIST", "KMNIST")]
    for path in (folder, folder / "raw", *below):
        stems = [path / f"{which}-images-idx3-ubyte" for which in ("train", "t10k")]
        files = tuple(_file(stem, stem.with_suffix(".gz")) for stem in stems)
        if images := _both(path, str(folder), files, _idx_part):
            return images
    return None


def _idx_part(path: Path) -> Part:
    stem = path.with_name(path.stem.replace("images-idx3", "labels-idx1"))
    labels = _file(stem, stem.with_suffix(".gz"))
    if labels is None:
        raise InvalidRequest(f"data={str(path.parent)!r} has no {stem.name}")
    return _part(read_idx(path)[..., None], read_idx(labels), str(path))


def _cifar(folder: Path) -> Images | None:
    ten = [f"data_batch_{k}" for k in range(1, 6)], ["test_batch"]
    for below, parts in (
        ("cifar-10-batches-py", ten), ("cifar-100-python", (["train"], ["test"]))
    ):  # fmt: skip
        for path in (folder / below, folder):
            if all((path / names[0]).is_file() for names in parts):
                return _images(str(folder), *(_cifar_part(path, names) for names in parts))
    return None


def _cifar_part(folder: Path, names: Sequence[str]) -> Part:
    pixels: list[NDArray[Any]] = []
    labels: list[int] = []
    for path in (folder / name for name in names):
        batch = read_cifar(path)
        data: Any = batch.get("data")
        own = batch.get("labels", batch.get("fine_labels"))
        rows = isinstance(data, np.ndarray) and data.shape[1:] == (3072,)
        if not rows or not isinstance(own, list) or any(type(n) is not int for n in own):
            raise InvalidRequest(f"file={str(path)!r} needs rows of 3072 numbers, and labels")
        pixels.append(data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        labels += own
    return _part(np.concatenate(pixels), labels, str(folder))


def _svhn(folder: Path) -> Images | None:
    """Read SVHN in format 2 (class 0 has the label 10); return None if both files are missing."""
    files = tuple(_file(folder / f"{which}_32x32.mat") for which in ("train", "test"))
    return _both(folder, str(folder), files, _svhn_part)


def _svhn_part(path: Path) -> Part:
    from scipy.io import loadmat

    try:
        content = loadmat(path, variable_names=("X", "y"))
        pixels, labels = content["X"], content["y"].ravel().astype(np.int64) % 10
        return _part(np.moveaxis(pixels, 3, 0), labels, str(path))
    except InvalidRequest:
        raise
    except Exception as error:  # scipy raises many types for damaged files
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidRequest(
            f"file={str(path)!r} cannot be read ({reason}); it can hold images X of shape "
            "(32, 32, 3, N) with labels y"
        ) from None
