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


def test_rows_of_sst2_give_the_scores_that_are_kept():
    """Counted words are the same in both files, seed by seed."""
    runs = checksums.DATA / "runs"
    kept = json.loads((runs / "which_is_better.json").read_text("utf-8"))
    listed = json.loads((runs / "small_sets.json").read_text("utf-8"))
    (known,) = (r for r in listed if r["name"] == "bag_of_words_sst2_500")
    right = kept["right"]["words"]
    assert len(right) == 4
    for seed, digits in enumerate(right):
        share = int(digits, 16).bit_count() / kept["dev_rows"]
        assert share == pytest.approx(known["scores"][seed][0], abs=1e-4)
    assert kept["dev_rows"] == 872
    for name, found in kept["right"].items():
        assert {len(digits) for digits in found} == {2 * 872 // 8}, name
