"""Data sets: what is written in a layout is read back; objects on textured backgrounds."""

import gzip
import os
import pickle
import struct
import sys

import numpy as np
import pytest
from scipy.io import savemat
from small_images import idx_bytes

from dynamics.images import datasets, textures
from dynamics.images.formats import read_cifar, read_idx
from dynamics.images.networks import patches_of
from dynamics.validation import LONGEST, InvalidRequest


def refusal(function, *words):
    with pytest.raises(InvalidRequest) as refused:
        function(*words)
    message = str(refused.value)
    assert "\n" not in message
    assert len(message) <= LONGEST
    return message


def pictures(count, side, channels=1, seed=0):
    random = np.random.default_rng(seed)
    shape = (count, side, side, channels)
    labels = np.arange(count) % 10
    return random.integers(256, size=shape, dtype=np.uint8), labels.astype(np.uint8)


def write_mnist(folder, end=""):
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", 30), ("t10k", 20)):
        pixels, labels = pictures(count, 6, seed=count)
        contents = {"images-idx3": pixels[..., 0], "labels-idx1": labels}
        for kind, array in contents.items():
            content = idx_bytes(array)
            content = gzip.compress(content) if end else content
            (folder / f"{name}-{kind}-ubyte{end}").write_bytes(content)


def write_cifar(folder, names, protocol=2):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        pixels, labels = pictures(10, 32, 3, seed=len(name))
        rows = pixels.transpose(0, 3, 1, 2).reshape(10, 3072)
        batch = {"batch_label": name, "data": rows, "labels": labels.tolist(), "filenames": ["a"]}
        (folder / name).write_bytes(pickle.dumps(batch, protocol=protocol))


CIFAR = [*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"]


@pytest.mark.parametrize(
    ("kind", "compress"), [("u1", gzip.compress), ("i4", bytes), ("f4", bytes)]
)
def test_idx_files_round_trip(kind, compress, tmp_path):
    array = np.random.default_rng(1).normal(60, 9, size=(3, 4, 5)).astype(kind)
    (tmp_path / "file").write_bytes(compress(idx_bytes(array)))
    np.testing.assert_array_equal(read_idx(tmp_path / "file"), array)


def test_idx_files_that_are_cut_or_wrong_are_refused(tmp_path):
    path, whole = tmp_path / "file", idx_bytes(np.zeros((4, 5), "u1"))
    huge = bytes([0, 0, 8, 3]) + struct.pack(">3I", 2**31, 2**31, 2**31)
    packed = gzip.compress(whole)[:-12]
    for content in (whole[:-1], whole + b"\0", whole[:6], b"", b"\x89PNG....", packed, huge):
        path.write_bytes(content)
        assert "not a whole IDX file" in refusal(read_idx, path)
    assert "no such file" in refusal(read_idx, tmp_path / "none")


@pytest.mark.parametrize(("below", "end"), [("", ".gz"), ("raw", ""), ("FashionMNIST/raw", "")])
def test_a_folder_as_of_mnist(below, end, tmp_path):
    write_mnist(tmp_path / below, end)
    images = datasets.load(tmp_path)
    pixels, labels = pictures(30, 6, seed=30)
    np.testing.assert_array_equal(images.train.pixels, pixels)
    np.testing.assert_array_equal(images.train.labels, labels)
    assert images.test.pixels.shape == (20, 6, 6, 1)
    assert (images.classes, images.side, images.channels) == (10, 6, 1)


@pytest.mark.parametrize("protocol", [2, 5])
def test_a_folder_as_of_cifar_10(protocol, tmp_path):
    write_cifar(tmp_path / "cifar-10-batches-py", CIFAR, protocol=protocol)
    images = datasets.load(tmp_path)
    assert images.train.pixels.shape == (50, 32, 32, 3)
    np.testing.assert_array_equal(images.train.pixels[:10], pictures(10, 32, 3, seed=12)[0])
    np.testing.assert_array_equal(images.test.pixels, pictures(10, 32, 3, seed=10)[0])
    np.testing.assert_array_equal(images.test.labels, np.arange(10))
    assert datasets.load(tmp_path / "cifar-10-batches-py").digest() == images.digest()


def python_2_batch(rows, labels):
    """What cPickle of Python 2 writes of a dict with an array and a list of whole numbers."""
    text = lambda word: b"U" + bytes([len(word)]) + word  # noqa: E731 (an opcode)
    raw = rows.tobytes()
    shape = b"".join(b"M" + struct.pack("<H", n) for n in rows.shape) + b"\x86"
    kind = b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xff"
    kind += b"J\xff\xff\xff\xffK\x00tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    array += b"(K\x01" + shape + kind + b"\x89T" + struct.pack("<I", len(raw)) + raw + b"tb"
    numbers = b"](" + b"".join(b"K" + bytes([n]) for n in labels) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(b"labels") + numbers + b"u."


def test_a_batch_as_python_2_wrote_it(tmp_path):
    rows, path = np.arange(2 * 3072, dtype=np.uint8).reshape(2, 3072), tmp_path / "batch"
    path.write_bytes(python_2_batch(rows, [3, 8]))
    batch = read_cifar(path)
    np.testing.assert_array_equal(batch["data"], rows)
    assert batch["labels"] == [3, 8]
    lie = path.read_bytes().replace(struct.pack("<H", 3072), struct.pack("<H", 60_000), 1)
    path.write_bytes(lie)
    assert "match array size" in refusal(read_cifar, path)
    objects = np.array([None, "x"], dtype=object)
    path.write_bytes(pickle.dumps({"data": objects, "labels": [1]}, protocol=2))
    assert "not numbers" in refusal(read_cifar, path)


class Runs:
    """What a hostile pickle is made of: reading it makes a folder."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_a_hostile_pickle_is_not_run(tmp_path):
    made = tmp_path / "made"
    content = pickle.dumps({"data": Runs(made), "labels": [0]})
    (tmp_path / "batch").write_bytes(content)
    assert "mkdir" in refusal(read_cifar, tmp_path / "batch")
    assert not made.exists()
    pickle.loads(content)  # it is hostile indeed
    assert made.exists()


@pytest.mark.parametrize(
    "program",
    [
        b"cbuiltins\neval\n(S'1'\ntR.", b"cnumpy.core.multiarray\nscalar\n.",
        b"\x80\x04\x8c\x05numpy\x8c\x10ndarray.__init__\x93.", b"Pmine\n.", b"\x82\x01.",
        b"c_codecs\nencode\n(S'x'\nS'zlib'\ntR.", b"c_codecs\nencode\n(N}S'array'\nK\x01stb.",
        b"\x80\x02}", b"", b"(" * 10**4, b"\x80\x04\x8e" + struct.pack("<Q", 2**60) + b".",
    ],
)  # fmt: skip
def test_other_pickles_are_refused_in_one_line(program, tmp_path):
    path = tmp_path / "batch"
    path.write_bytes(program)
    assert "not a batch of CIFAR" in refusal(read_cifar, path)


def test_batches_without_images_or_labels_are_refused(tmp_path):
    write_cifar(tmp_path, CIFAR)
    row = np.zeros((1, 3072), np.uint8)
    for data, labels in ((None, [1]), (row[:, 1:], [1]), (row, ["cat"]), (row, None)):
        batch = {"data": data, "labels": labels}
        batch = {name: value for name, value in batch.items() if value is not None}
        (tmp_path / "data_batch_2").write_bytes(pickle.dumps(batch))
        assert "needs rows of 3072 numbers, and labels" in refusal(datasets.load, tmp_path)


def test_a_folder_as_of_svhn(tmp_path):
    for name, count in (("train", 12), ("test", 11)):
        pixels, labels = pictures(count, 32, 3, seed=count)
        labels = np.where(labels == 0, 10, labels)[:, None]
        savemat(tmp_path / f"{name}_32x32.mat", {"X": np.moveaxis(pixels, 0, 3), "y": labels})
    images = datasets.load(tmp_path)
    np.testing.assert_array_equal(images.train.pixels, pictures(12, 32, 3, seed=12)[0])
    np.testing.assert_array_equal(images.train.labels, np.arange(12) % 10)
    whole = (tmp_path / "test_32x32.mat").read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"no mat file" * 40):
        (tmp_path / "test_32x32.mat").write_bytes(content)
        assert "cannot be read" in refusal(datasets.load, tmp_path)
    savemat(tmp_path / "test_32x32.mat", {"Z": np.zeros(3)})
    assert "('X')" in refusal(datasets.load, tmp_path)


def test_folders_that_are_none_or_lack_a_part(tmp_path):
    assert "has none of" in refusal(datasets.load, tmp_path)
    assert "not a folder" in refusal(datasets.load, "digitz")
    write_mnist(tmp_path / "mnist")
    (tmp_path / "mnist" / "t10k-images-idx3-ubyte").unlink()
    assert "no test images" in refusal(datasets.load, tmp_path / "mnist")
    write_mnist(tmp_path / "mnist")
    (tmp_path / "mnist" / "t10k-labels-idx1-ubyte").write_bytes(idx_bytes(np.zeros(7, "u1")))
    assert "20 images and 7 labels" in refusal(datasets.load, tmp_path / "mnist")
    write_cifar(tmp_path / "cifar", CIFAR)
    (tmp_path / "cifar" / "data_batch_3").unlink()
    assert "data_batch_3" in refusal(datasets.load, tmp_path / "cifar")


def small(count=40, tests=0):
    pixels, labels = pictures(count, 6)
    test = datasets.Part(*pictures(tests, 6, seed=1)) if tests else None
    return datasets.Images("small", datasets.Part(pixels, labels.astype(np.int32)), test)


def test_a_split_repeats_no_image_and_is_standardized():
    first, again, other = (datasets.split(small(), 25, 10, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.pixels, again.pixels)
    assert not np.array_equal(first.labels, other.labels)
    every = np.concatenate([first.pixels, first.test_pixels]).reshape(35, -1)
    assert len(np.unique(every.round(4), axis=0)) == 35
    assert abs(first.pixels.mean()) < 1e-5
    assert abs(first.pixels.std() - 1) < 1e-5
    assert datasets.split(small(40, 12)).test_labels.shape == (12,)
    assert "too large" in refusal(datasets.split, small(), 31, 10)
    assert "too large" in refusal(datasets.split, small(40, 12), 0, 13)


def test_shuffled_blocks_are_moved_whole():
    pixels = small(5).train.pixels.astype(np.float32)
    order = np.random.default_rng(3).permutation(9)
    moved = datasets.shuffled(pixels, order, 2)
    for block, source in enumerate(order):
        (row, column), (y, x) = divmod(block, 3), divmod(int(source), 3)
        np.testing.assert_array_equal(
            moved[:, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2],
            pixels[:, 2 * y : 2 * y + 2, 2 * x : 2 * x + 2],
        )
    np.testing.assert_array_equal(datasets.shuffled(moved, np.argsort(order), 2), pixels)


def made(textured=True, count=30, side=10, patch=2):
    random = np.random.default_rng(0)
    objects = random.normal(size=(count, 8, 8, 1)).astype(np.float32)
    background = textures.texture("noise", random)
    flags = np.full(count, textured)
    return objects, textures.integrate(objects, background, side, patch, flags, random)


def test_the_relevant_patches_are_those_of_the_object():
    objects, (pixels, relevant) = made()
    assert relevant.sum(axis=1).tolist() == [16] * 30
    for image, own, mask in zip(pixels, objects, relevant, strict=True):
        inside = patches_of(image[None], 2)[0][mask]
        np.testing.assert_array_equal(inside, patches_of(own[None], 2)[0])
    assert len(np.unique(relevant, axis=0)) == 4


def test_textures_are_those_of_the_wheel_and_standardized():
    pytest.importorskip("skimage")
    every = [textures.texture(name, np.random.default_rng(0)) for name in textures.TEXTURES]
    for field in every:
        assert field.shape == (128, 128)
        assert abs(field.mean()) < 1e-9
        assert field.std() == pytest.approx(1)
    neighbours = [float((field[1:] * field[:-1]).mean()) for field in every]
    assert abs(neighbours[-1]) < 0.05  # noise is independent
    assert min(neighbours[:-1]) > 0.2


@pytest.mark.parametrize(
    ("share", "left"), [(0.64, 25), (0.76, 21), (0.89, 18), (1.0, 16), (0.1, 25)]
)
def test_the_share_of_relevant_patches_is_as_requested(share, left):
    _, (_, relevant) = made()
    present = textures.sparsified(relevant, share, np.random.default_rng(1))
    assert present.sum(axis=1).tolist() == [left] * 30
    assert (present & relevant).sum(axis=1).tolist() == [16] * 30


def test_what_cannot_be_is_refused(monkeypatch):
    with pytest.raises(InvalidRequest, match=r"texture='grasss' is unknown.*nearest: grass"):
        textures.texture("grasss", np.random.default_rng(0))
    for side in (6, 11):
        with pytest.raises(InvalidRequest, match=f"side={side} cannot hold objects of 8 pixels"):
            made(side=side)
    monkeypatch.setitem(sys.modules, "skimage.data", None)
    with pytest.raises(InvalidRequest, match="scikit-image, which is not installed"):
        textures.texture("brick", np.random.default_rng(0))
