"""A small data set in the layout of MNIST, for figures and claims on images."""

import struct

import numpy as np


def idx_bytes(array):
    """An array as an IDX file."""
    kinds = {"u1": 0x08, "i4": 0x0C, "f4": 0x0D}
    kind = array.dtype.str[1:]
    lengths = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes([0, 0, kinds[kind], array.ndim]) + lengths + array.astype(f">{kind}").tobytes()


def write_bars(folder, side=4, train=160, test=80):
    """Images with a bright bar of two pixels, across (0) or down (1): neighbours matter."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, count) in enumerate((("train", train), ("t10k", test))):
        random = np.random.default_rng(seed)
        labels = (np.arange(count) % 2).astype(np.uint8)
        pixels = random.integers(40, size=(count, side, side))
        for image, label in zip(pixels, labels, strict=True):
            y, x = random.integers(side - 1, size=2)
            image[y, x] = image[y + int(label), x + 1 - int(label)] = 255
        (folder / f"{name}-images-idx3-ubyte").write_bytes(idx_bytes(pixels.astype(np.uint8)))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(idx_bytes(labels))
    return str(folder)
