"""Numbers as reasons write them."""

from math import comb, nan

import pytest

from dynamics.verdicts.wording import counted, in_percent, listed, share_of


def test_numbers_of_a_reason():
    assert listed([1.23456, nan]) == "1.23, not seen"


@pytest.mark.parametrize(("count", "number"), [(17, 24), (0, 200), (27, 200), (5, 5)])
def test_the_interval_of_a_share_is_what_two_tails_of_the_binomial_law_leave(count, number):
    """Each end of Clopper and Pearson's interval makes what was seen 2.5 % likely, or is 0 or 1."""
    share, low, high = share_of(count, number)
    assert share == count / number

    def tail(chance, numbers):
        return sum(comb(number, k) * chance**k * (1 - chance) ** (number - k) for k in numbers)

    at_least, at_most = range(count, number + 1), range(count + 1)
    assert tail(low, at_least) == pytest.approx(0.025) if count else low == 0
    assert tail(high, at_most) == pytest.approx(0.025) if count < number else high == 1


def test_a_share_in_words():
    assert in_percent(17, 24) == "71 % (95 %: 49 to 87)"
    assert in_percent(0, 200) == "0 % (95 %: 0 to 1.8)"
    assert in_percent(3, 3) == "100 % (95 %: 29 to 100)"


def test_one_of_a_kind_has_no_plural():
    assert [counted(number, "seed") for number in (0, 1, 2, 1200)] == [
        "0 seeds", "1 seed", "2 seeds", "1,200 seeds",
    ]  # fmt: skip
