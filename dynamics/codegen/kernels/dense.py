r"""Products of small matrices with rows of samples, in tiles that stay in registers.

Rows hold one number per sample of a block, or the entries of a patch; inner loops run along them,
or over the other side of the matrix where that is longer, and become vector instructions. Four rows
are read for four results (or two) at a time: each number loaded is used several times, which is
what a product needs to run at the speed of arithmetic. The order of every sum is fixed by the
shapes alone.
"""


def mix(weights, rows, turned, out):  # type: ignore[no-untyped-def]
    """out[i] = sum over k of weights[i, k] rows[k], with the longer side in the inner loops.

    Parameters
    ----------
    weights : float array, shape (I, K)
    rows : float array, shape (K, samples)
    turned : float array, shape (samples, K)
        Overwritten; the transpose of ``rows`` on return.
    out : float array, shape (I, samples)
    """
    out[:] = 0.0
    for k in range(rows.shape[0]):
        for n in range(rows.shape[1]):
            turned[n, k] = rows[k, n]
    if rows.shape[1] >= rows.shape[0]:
        add_weighted_rows(rows, weights, out)
    else:
        add_products(weights, turned, out)


def add_outer(left, right, turned, out):  # type: ignore[no-untyped-def]
    """out[i, k] += sum over samples of left[i] right[k].

    Parameters
    ----------
    left : float array, shape (I, samples)
    right : float array, shape (K, samples)
    turned : float array, shape (samples, K)
        The transpose of ``right``.
    out : float array, shape (I, K)
    """
    if left.shape[1] >= right.shape[0]:
        add_products(left, right, out)
    else:
        add_weighted_rows(turned, left, out)


def add_weighted_rows(rows, weights, out):  # type: ignore[no-untyped-def]
    """out[i] += sum over k of weights[i, k] rows[k].

    Parameters
    ----------
    rows : float array, shape (K, length)
    weights : float array, shape (I, K)
    out : float array, shape (I, length)
    """
    many, terms, count = out.shape[0], rows.shape[0], rows.shape[1]
    whole, full = many - many % 4, terms - terms % 4
    for i in range(0, whole, 4):
        o0, o1, o2, o3 = out[i], out[i + 1], out[i + 2], out[i + 3]
        w0, w1, w2, w3 = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        for k in range(0, full, 4):
            r0, r1, r2, r3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
            a0, a1, a2, a3 = w0[k], w0[k + 1], w0[k + 2], w0[k + 3]
            b0, b1, b2, b3 = w1[k], w1[k + 1], w1[k + 2], w1[k + 3]
            c0, c1, c2, c3 = w2[k], w2[k + 1], w2[k + 2], w2[k + 3]
            d0, d1, d2, d3 = w3[k], w3[k + 1], w3[k + 2], w3[k + 3]
            for n in range(count):
                x0, x1, x2, x3 = r0[n], r1[n], r2[n], r3[n]
                o0[n] += a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3
                o1[n] += b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3
                o2[n] += c0 * x0 + c1 * x1 + c2 * x2 + c3 * x3
                o3[n] += d0 * x0 + d1 * x1 + d2 * x2 + d3 * x3
        for k in range(full, terms):
            for i_rest in range(i, i + 4):
                add_scaled(rows[k], weights[i_rest, k], out[i_rest])
    for i in range(whole, many):
        for k in range(terms):
            add_scaled(rows[k], weights[i, k], out[i])


def add_weighted_sum(rows, weights, out):  # type: ignore[no-untyped-def]
    """Add to out the sum over k of weights[k] rows[k].

    Parameters
    ----------
    rows : float array, shape (K, length)
    weights : float array, shape (K,)
    out : float array, shape (length,)
    """
    terms, count = rows.shape[0], rows.shape[1]
    full = terms - terms % 4
    for k in range(0, full, 4):
        r0, r1, r2, r3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        a, b, c, d = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for n in range(count):
            out[n] += a * r0[n] + b * r1[n] + c * r2[n] + d * r3[n]
    for k in range(full, terms):
        add_scaled(rows[k], weights[k], out)


def add_scaled(row, weight, out):  # type: ignore[no-untyped-def]
    """Add weight times a row to out.

    Parameters
    ----------
    row, out : float array, shape (length,)
    weight : float
    """
    for n in range(out.size):
        out[n] += weight * row[n]


def add_products(left, right, out):  # type: ignore[no-untyped-def]
    """out[i, k] += sum over samples of left[i] right[k].

    Parameters
    ----------
    left : float array, shape (I, samples)
    right : float array, shape (K, samples)
    out : float array, shape (I, K)
    """
    many, terms, count = left.shape[0], right.shape[0], right.shape[1]
    whole, full = many - many % 2, terms - terms % 4
    zero = left.dtype.type(0.0)
    for i in range(0, whole, 2):
        x, y, p, q = left[i], left[i + 1], out[i], out[i + 1]
        for k in range(0, full, 4):
            r0, r1, r2, r3 = right[k], right[k + 1], right[k + 2], right[k + 3]
            s0, s1, s2, s3 = zero, zero, zero, zero
            t0, t1, t2, t3 = zero, zero, zero, zero
            for n in range(count):
                a, b = x[n], y[n]
                s0 += a * r0[n]
                s1 += a * r1[n]
                s2 += a * r2[n]
                s3 += a * r3[n]
                t0 += b * r0[n]
                t1 += b * r1[n]
                t2 += b * r2[n]
                t3 += b * r3[n]
            p[k] += s0
            p[k + 1] += s1
            p[k + 2] += s2
            p[k + 3] += s3
            q[k] += t0
            q[k + 1] += t1
            q[k + 2] += t2
            q[k + 3] += t3
        for k in range(full, terms):
            p[k] += product(x, right[k], zero)
            q[k] += product(y, right[k], zero)
    for i in range(whole, many):
        add_moments(right, left[i], out[i])


def add_moments(rows, weights, out):  # type: ignore[no-untyped-def]
    """out[k] += sum over n of rows[k, n] weights[n].

    Parameters
    ----------
    rows : float array, shape (K, length)
    weights : float array, shape (length,)
    out : float array, shape (K,)
    """
    terms, count = rows.shape[0], rows.shape[1]
    full = terms - terms % 4
    zero = rows.dtype.type(0.0)
    for k in range(0, full, 4):
        r0, r1, r2, r3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        s0, s1, s2, s3 = zero, zero, zero, zero
        for n in range(count):
            w = weights[n]
            s0 += r0[n] * w
            s1 += r1[n] * w
            s2 += r2[n] * w
            s3 += r3[n] * w
        out[k] += s0
        out[k + 1] += s1
        out[k + 2] += s2
        out[k + 3] += s3
    for k in range(full, terms):
        out[k] += product(rows[k], weights, zero)


def product(one, two, zero):  # type: ignore[no-untyped-def]
    """Sum over samples of one times two.

    Parameters
    ----------
    one, two : float array, shape (samples,)
    zero : float
        Its type is that of the sum.
    """
    total = zero
    for n in range(one.size):
        total += one[n] * two[n]
    return total
