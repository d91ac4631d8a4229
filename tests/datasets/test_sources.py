"""Addresses and checksums of published files."""

import re

import pytest

from bertbook.datasets.catalog import SETS
from bertbook.datasets.download import ADVICE, PUBLISHED, downloads_of

SPLITS = [
    (name, split) for name, known in SETS.items() for split in known.files
]


@pytest.mark.parametrize(("name", "split"), SPLITS)
def test_a_set_has_downloads_or_advice_or_ships(name, split):
    downloads = downloads_of(name, split)
    advice = name in ADVICE
    assert bool(downloads) + advice + SETS[name].ships == 1
    for one in downloads:
        assert re.fullmatch(r"https://[\w.-]+/[\w./-]+", one.url)
        assert re.fullmatch(r"[0-9a-f]{64}", one.sha256)
        assert one.size > 6_000
        assert one.url.endswith(one.place.split("/")[-1])


def test_every_published_checksum_is_used():
    used = {
        one.sha256
        for name, split in SPLITS
        for one in downloads_of(name, split)
    }
    assert len(used) == len(PUBLISHED.strip().splitlines()) / 2 == 19


def test_mrpc_needs_two_files():
    places = [one.place for one in downloads_of("mrpc", "dev")]
    assert places == ["MRPC/msr_paraphrase_train.txt", "MRPC/mrpc_dev_ids.tsv"]


def test_spa_eng_alone_has_the_checksum_of_a_member():
    members = {
        (name, one.member)
        for name, split in SPLITS
        for one in downloads_of(name, split)
    }
    assert ("spa_eng", "spa-eng/spa.txt") in members
    assert {name for name, member in members if member} == {"spa_eng"}
    (one,) = downloads_of("spa_eng", "test")
    assert SETS["spa_eng"].archives == (one.place,)
    assert one.member in SETS["spa_eng"].files["test"]


def test_a_name_that_is_none_has_no_downloads():
    assert downloads_of("sst", "dev") == []


def test_a_split_brings_its_own_files_and_whole_addresses():
    (train,) = downloads_of("squad", "train")
    (dev,) = downloads_of("squad", "dev")
    address = "https://rajpurkar.github.io/SQuAD-explorer/dataset/"
    assert train.url == address + "train-v1.1.json"
    assert dev.url == address + "dev-v1.1.json"
    assert downloads_of("sst2", "train") == downloads_of("sst2", "dev")
