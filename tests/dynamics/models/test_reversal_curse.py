"""The reversal curse: the held-out directions at several sizes, and broken laws."""

import numpy as np
import pytest

import dynamics


@pytest.fixture(scope="module")
def system():
    return dynamics.load_system("reversal_curse")


def by_hand(both, one, eta, steps):
    """Probabilities of right tokens, trained and held out, by arrays and loops alone."""
    facts = both + 2 * one
    tokens = 2 + 2 * facts
    trained, held_out = [], []
    for fact in range(facts):
        A, B = 2 + 2 * fact, 3 + 2 * fact
        forwards, backwards = (A, 0, B), (B, 1, A)
        only = {True: forwards, False: backwards}[fact < both + one]
        for sentence in (forwards, backwards):
            (trained if fact < both or sentence == only else held_out).append(sentence)
    z, Y = np.zeros((2, tokens)), np.zeros((tokens, tokens))

    def chance(sentence):
        token, arrow, last = sentence
        e = np.exp(z[arrow, [token, arrow]])
        b = e / e.sum()
        f = b / np.linalg.norm(b)
        logits = f[0] * Y[token] + f[1] * Y[arrow]
        return b, f, np.exp(logits) / np.exp(logits).sum()

    for _ in range(steps):
        dz, dY = np.zeros_like(z), np.zeros_like(Y)
        for token, arrow, last in trained:
            b, f, q = chance((token, arrow, last))
            off = (q - (np.arange(tokens) == last)) / len(trained)
            dY[token] += f[0] * off
            dY[arrow] += f[1] * off
            of_f = np.array([Y[token] @ off, Y[arrow] @ off])
            of_b = (of_f - f * (f @ of_f)) / np.linalg.norm(b)
            dz[arrow, [token, arrow]] += b * (of_b - b @ of_b)
        z, Y = z - eta * dz, Y - eta * dY
    return [np.mean([chance(s)[2][s[2]] for s in part]) for part in (trained, held_out)]


@pytest.mark.parametrize(("both", "one"), [(4, 2), (2, 3)])
def test_descent_by_hand(system, both, one):
    law = system.Parameters(both=both, one=one)
    expected = by_hand(both, one, 5.0, 150)
    for view in ("ReducedPopulation", "FullPopulation"):
        run = dynamics.descend(getattr(system, view)(law), 5.0, 150)
        found = [run["known"][-1], run["held_out_known"][-1]]
        np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize(("both", "one"), [(2, 2), (4, 2), (10, 5)])
def test_the_way_back_is_never_better_than_a_guess(system, both, one):
    law = system.Parameters(both=both, one=one)
    closure = system.closure(law)
    assert (closure.scalars, closure.grade) == (7, "proved")
    tokens = 2 + 2 * (both + 2 * one)
    run = dynamics.flow(system.ReducedPopulation(law), 1e5)
    assert run["known"][-1] > 0.99
    assert run["held_out_risk"][0] == pytest.approx(np.log(tokens), rel=1e-14)
    assert run["held_out_risk"].min() >= np.log(tokens) * (1 - 1e-14)
    assert run["held_out_known"][-1] < 1 / tokens
