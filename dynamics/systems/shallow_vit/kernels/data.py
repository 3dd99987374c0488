"""Inputs of the kernels of the shallow ViT beside the state."""

from typing import Any, NamedTuple


class Choice(NamedTuple):
    """What is trained on.

    Attributes
    ----------
    margin, length : float
        gamma and L.
    hinge : bool
        Whether the loss is the hinge, not linear.
    attention, values : bool
        Whether K and Q are trained, and V.
    """

    margin: float
    length: float
    hinge: bool
    attention: bool
    values: bool


class Vectors(NamedTuple):
    """Count vectors, without their weights.

    Attributes
    ----------
    counts : float array, shape (S, M)
    labels : float array, shape (S,)
    rows, scale : int and float array, shape (S, M)
        The output weights of pattern j are ``scale[j] table[rows[j]]``.
    table : float array, shape (rows, m)
    """

    counts: Any
    labels: Any
    rows: Any
    scale: Any
    table: Any


class Layer(NamedTuple):
    """Work arrays for a state; rows of patterns and of d are padded to multiples of five.

    Attributes
    ----------
    tall, steep : float arrays, shapes (d, m)
        W_O transposed, and its gradient.
    responses : float array, shape (patterns, m)
        H transposed.
    scores, powers : float arrays, shape (M, M)
        B, and its exponentials.
    padded, few : float arrays, shapes (d,), (patterns,)
    """

    tall: Any
    steep: Any
    responses: Any
    scores: Any
    powers: Any
    padded: Any
    few: Any


class Column(NamedTuple):
    """Work arrays for one vector of counts: attention P, its transpose, gated output weights.

    Attributes
    ----------
    attention, columns : float arrays, shapes (M, M), (M, patterns)
    gates : float array, shape (patterns, m)
    sums, slopes : float arrays, shapes (m,), (M,)
    """

    attention: Any
    columns: Any
    gates: Any
    sums: Any
    slopes: Any


class Sums(NamedTuple):
    """Sums over vectors, and scratch for one of them.

    Attributes
    ----------
    by_response, by_score : float arrays, shapes (patterns, m), (M, M)
        E transposed, and T.
    weights, products : float arrays, shapes (M, patterns), (patterns,)
    """

    by_response: Any
    by_score: Any
    weights: Any
    products: Any


class Memory(NamedTuple):
    """Order parameters of the last pass over all vectors.

    Attributes
    ----------
    numbers : float array, shape (4,)
    state, number : float array, shape (n,), and int array, shape (1,)
        State and batch of that pass. Whoever changes samples or weights in place has to set the
        state to NaN, or to take a gradient.
    """

    numbers: Any
    state: Any
    number: Any


class PatternData(NamedTuple):
    """What the kernels need beside the state.

    Attributes
    ----------
    vectors : Vectors
    batch, whole : dynamics.systems.empirical_problem.Batch
        The vectors of the gradient, and those of the order parameters.
    choice : Choice
    layer : Layer
    column : Column
    sums : Sums
    memory : Memory
    """

    vectors: Vectors
    batch: Any
    whole: Any
    choice: Choice
    layer: Layer
    column: Column
    sums: Sums
    memory: Memory


class Samples(NamedTuple):
    """Tokens of samples, without their weights.

    Attributes
    ----------
    tokens, rows : float arrays, shapes (N, L, d) and (N, d, queries)
        X, with keys and with queries contiguous; queries beyond L are zero.
    labels : float array, shape (N,)
    kinds : int array, shape (N, L)
        0 relevant, 1 confusion, 2 another.
    """

    tokens: Any
    rows: Any
    labels: Any
    kinds: Any


class Model(NamedTuple):
    """Weights of a state as the kernels read them.

    Attributes
    ----------
    scores : float array, shape (d, d)
        B.
    inner, outer : float arrays, shape (chunks, d, width)
        W and W_O.
    values, turned : float arrays, shape (d, d)
        W_V and its transpose.
    signs : float array, shape (chunks, 1 or L, width)
        a.
    """

    scores: Any
    inner: Any
    outer: Any
    values: Any
    turned: Any
    signs: Any


class Room(NamedTuple):
    """What the kernels write into, each with the lanes first.

    Attributes
    ----------
    by_neuron, by_score, numbers : float arrays, shapes (chunks, d, width), (d, d), (6,)
        Sums of a lane: E, T, and of the weights times: loss, active, wrong, attention to relevant
        keys by kind of query.
    gates, squares, strips, entering : float arrays
        Of one sample: D (chunks, L, width), (2, L, queries), (4, d, queries), (L, d).
    totals : float array, shape (6,)
        ``numbers`` of the last pass over a whole set, summed over the lanes.
    state, number : float array, shape (n,), and int array, shape (1,)
        State and batch of that pass. Whoever changes samples or weights in place has to set the
        state to NaN, or to take a gradient.
    """

    by_neuron: Any
    by_score: Any
    numbers: Any
    gates: Any
    squares: Any
    strips: Any
    entering: Any
    totals: Any
    state: Any
    number: Any


class TokenData(NamedTuple):
    """What the kernels need beside the state.

    Attributes
    ----------
    choice : Choice
    samples : Samples
    batch, whole : dynamics.systems.empirical_problem.Batch
        The samples of the gradient, and those of the order parameters; weights as they are, divided
        by their sum.
    model : Model
    room : Room
    """

    choice: Choice
    samples: Samples
    batch: Any
    whole: Any
    model: Model
    room: Room
