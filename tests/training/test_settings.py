"""Fields of settings: out of range, of another kind or NaN is refused."""

import dataclasses
import math

import numpy as np
import pytest

from bertbook.training import settings


@dataclasses.dataclass(frozen=True)
class Fields:
    value: object


@pytest.mark.parametrize(
    ("check", "values"),
    [
        (settings.set_count, [0, -1, 1.0, math.nan, True, "3", None, 2**31]),
        (settings.set_number, [0, -1, math.nan, math.inf, True, "3", None]),
        (
            settings.set_number,
            [10**400, 1j, np.array([1.0]), np.float32("nan")],
        ),
        (
            settings.set_share,
            [-0.1, 1.1, math.nan, False, "0.5", None, 10**400],
        ),
        (settings.set_seed, [-1, 2**32, 0.0, math.nan, True, "3", None]),
    ],
)
def test_a_bad_value_is_named(check, values):
    for value in values:
        with pytest.raises(ValueError, match=r"`value` must be .* Received: "):
            check(Fields(value), "value")


def test_ends_of_a_range_count_as_they_are_told():
    for zero in (True, False):
        for one in (True, False):
            for value, allowed in ((0, zero), (1, one), (0.5, True)):
                if allowed:
                    settings.checked_share(value, "value", zero, one)
                    continue
                span = f"{'[' if zero else '('}0, 1{']' if one else ')'}"
                with pytest.raises(ValueError, match="`value` must") as found:
                    settings.checked_share(value, "value", zero, one)
                assert f"`value` must be in {span}." in str(found.value)
    fields = Fields(0)
    settings.set_number(fields, "value", zero=True)
    with pytest.raises(ValueError, match="a number >= 0"):
        settings.set_number(Fields(-1), "value", zero=True)


@pytest.mark.parametrize(
    ("check", "value", "plain"),
    [
        (settings.set_count, np.int64(3), 3),
        (settings.set_number, np.float32(0.5), 0.5),
        (settings.set_share, np.float64(0.25), 0.25),
        (settings.set_seed, np.uint8(7), 7),
    ],
)
def test_numbers_of_numpy_become_plain(check, value, plain):
    fields = Fields(value)
    check(fields, "value")
    assert fields.value == plain
    assert type(fields.value) is type(plain)
