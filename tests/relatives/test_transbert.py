"""Trainings in a row: their order, and what each starts from."""

import pytest

from bertbook.relatives.transbert import KINDS, Stage, run_stages


def recorder(log):
    """Returns a function that makes a stage of a kind, which only writes."""

    def stage(kind):
        def train(start, out):
            log.append((kind, str(getattr(start, "name", start)), out.name))

        return Stage(kind, train)

    return stage


def test_three_stages_come_in_order(tmp_path):
    log = []
    stages = [recorder(log)(kind) for kind in KINDS]
    folders = run_stages("mini", stages, tmp_path)
    assert log == [
        ("unsupervised", "mini", "1_unsupervised"),
        ("transfer", "1_unsupervised", "2_transfer"),
        ("target", "2_transfer", "3_target"),
    ]
    assert folders == [tmp_path / out for _, _, out in log]


@pytest.mark.parametrize(
    "kinds",
    [
        (),
        ("unsupervised", "transfer"),
        ("target", "transfer"),
        ("transfer", "unsupervised", "target"),
        ("transfer", "target", "target"),
    ],
)
def test_another_order_is_refused_before_anything_is_trained(kinds, tmp_path):
    log = []
    with pytest.raises(ValueError, match="must come in the order"):
        run_stages("mini", map_stages(kinds, log), tmp_path)
    assert log == []


def map_stages(kinds, log):
    return [recorder(log)(kind) for kind in kinds]


def test_an_unknown_kind_is_refused(tmp_path):
    with pytest.raises(ValueError, match="Received: 'supervised'"):
        run_stages("mini", map_stages(["supervised"], []), tmp_path)
