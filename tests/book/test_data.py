"""Every file that ships is the one that `data/SHA256SUMS` names."""

import json
import statistics

import pytest

import checksums


def test_checksums_measure_files():
    assert checksums.measured(), "data/ holds no file"


def test_the_readme_ships():
    assert "README.md" in checksums.measured()


def test_every_file_has_its_checksum():
    assert checksums.LIST.is_file(), "run `make checksums`"
    listed, measured = checksums.listed(), checksums.measured()
    assert sorted(measured.keys() - listed.keys()) == [], "not in the list"
    assert sorted(listed.keys() - measured.keys()) == [], "no such file"
    changed = [name for name in listed if listed[name] != measured[name]]
    assert changed == [], "changed: if that is right, run `make checksums`"


def test_a_floor_is_the_mean_and_three_deviations_of_ten_scores():
    path = checksums.DATA / "runs" / "floors.json"
    for found in json.loads(path.read_text(encoding="utf-8")).values():
        mean, deviation = (
            measure(found["scores"])
            for measure in (statistics.mean, statistics.stdev)
        )
        assert len(found["scores"]) == 10
        assert found["floor"] == pytest.approx(mean + 3 * deviation, abs=1e-4)
