"""Data sets by name: where they are looked for, and the real ones."""

import hashlib
import re
from collections import Counter

import pooch
import pytest

import bertbook as bb
from bertbook.datasets import load as datasets
from bertbook.datasets.catalog import SETS
from bertbook.datasets.download import Download
from bertbook.datasets.load import find_dataset, load_dataset
from bertbook.locations import data_folder
from tests.helpers.set_files import rows, write, write_archive

TABLE = rows(("sentence", "label"), ("Fine.", "1"))
FINE = {"text": ["Fine."], "label": [1]}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, no folder of data, and no network."""
    monkeypatch.delenv("BERTBOOK_DATA", raising=False)
    monkeypatch.setattr(
        pooch, "os_cache", lambda name: tmp_path / "cache" / name
    )

    def no_network(*_):
        raise AssertionError("something was to be downloaded")

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", no_network)
    return tmp_path / "cache" / "bertbook" / "datasets"


@pytest.fixture
def published(cache, monkeypatch):
    """A set whose file is on a network that gives it; returns what it gives."""
    whole = write_archive(cache.parent / "S.zip", {"SST-2/dev.tsv": TABLE})
    content = whole.read_bytes()
    given = {"content": content, "asked": []}

    def answer(self, url, output_file, pooch):
        given["asked"].append(url)
        with open(output_file, "wb") as file:
            file.write(given["content"])

    sha256 = hashlib.sha256(content).hexdigest()
    one = Download("https://x.org/SST-2.zip", sha256, len(content), "SST-2.zip")
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", answer)
    monkeypatch.setattr(datasets, "downloads_of", lambda name, split: [one])
    return given


# Definition.

SAMPLES = {
    ("opinions", "train"): ({"text", "label"}, 400),
    ("opinions", "dev"): ({"text", "label"}, 200),
    ("reviews", "train"): ({"text", "label"}, 400),
    ("reviews", "dev"): ({"text", "label"}, 600),
    ("pairs", "train"): ({"text", "text_pair", "label"}, 300),
    ("pairs", "dev"): ({"text", "text_pair", "label"}, 100),
    ("questions", "train"): ({"id", "question", "context", "answers"}, 180),
    ("questions", "dev"): ({"id", "question", "context", "answers"}, 60),
    ("shelf_questions", "train"): (
        {"id", "question", "context", "answers"},
        464,
    ),
    ("shelf_questions", "dev"): (
        {"id", "question", "context", "answers"},
        240,
    ),
    ("tags", "train"): ({"tokens", "tags"}, 200),
    ("tags", "dev"): ({"tokens", "tags"}, 100),
    ("names", "train"): ({"tokens", "tags"}, 300),
    ("names", "dev"): ({"tokens", "tags"}, 300),
    ("notes", "train"): ({"tokens", "tags"}, 140),
    ("notes", "dev"): ({"tokens", "tags"}, 70),
    ("choices", "train"): ({"text", "choices", "label"}, 40),
    ("choices", "dev"): ({"text", "choices", "label"}, 20),
    ("translation", "train"): ({"source", "target"}, 520),
    ("translation", "dev"): ({"source", "target"}, 100),
}


@pytest.mark.parametrize(("name", "split"), SAMPLES)
def test_samples_ship(name, split, cache, monkeypatch, tmp_path):
    columns, count = SAMPLES[name, split]
    monkeypatch.setenv("BERTBOOK_DATA", str(tmp_path))  # is not asked
    data = bb.load_dataset(name, split)
    assert set(data) == columns
    assert {len(column) for column in data.values()} == {count}
    folder = data_folder() / "samples" / name
    assert find_dataset(name, split).path.parent == folder


def test_all_samples_are_tested():
    names = {name for name, known in SETS.items() if known.ships}
    assert names == {name for name, _ in SAMPLES}


def test_samples_hold_texts_and_labels_of_their_kind(cache):
    assert set(load_dataset("opinions")["label"]) == {0, 1}
    labels = {"entailment", "neutral", "contradiction"}
    assert set(load_dataset("pairs")["label"]) == labels
    choices = load_dataset("choices")
    assert {len(four) for four in choices["choices"]} == {4}
    assert set(choices["label"]) == {0, 1, 2, 3}
    answers = Counter(map(len, load_dataset("questions")["answers"]))
    assert answers[0] == 10
    tags = load_dataset("tags")
    for tokens, of_them in zip(tags["tokens"], tags["tags"], strict=True):
        assert len(tokens) == len(of_them) > 0
    pairs = load_dataset("translation")
    asked = [text.endswith("?") for text in pairs["source"]]
    assert asked == [text.endswith("?") for text in pairs["target"]]
    assert sum(text.startswith("¿") for text in pairs["target"]) > 10


def test_the_folder_is_that_of_the_call_or_of_the_environment(
    cache, tmp_path, monkeypatch
):
    one = write(tmp_path / "one" / "sst2" / "dev.tsv", TABLE)
    two = write(tmp_path / "two" / "sst2" / "dev.tsv", TABLE)
    assert find_dataset("sst2", "dev", tmp_path / "one").path == one
    monkeypatch.setenv("BERTBOOK_DATA", str(tmp_path / "two"))
    assert find_dataset("sst2", "dev").path == two
    assert find_dataset("sst2", "dev", str(tmp_path / "one")).path == one
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_dataset("sst2", "dev", "~/one").path == one
    monkeypatch.setenv("BERTBOOK_DATA", "~/two")
    assert find_dataset("sst2", "dev").path == two
    assert bb.load_dataset("sst2") == FINE, "dev is the default"
    assert bb.load_dataset("sst2", None) == FINE, "which None is, too"


def test_a_sample_in_the_given_folder_comes_first(cache, tmp_path):
    path = write(tmp_path / "opinions" / "dev.tsv", TABLE)
    assert find_dataset("opinions", "dev", tmp_path).path == path
    assert load_dataset("opinions", "dev", tmp_path) == FINE


def test_a_download_comes_last_and_is_kept(
    published, cache, tmp_path, monkeypatch
):
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("BERTBOOK_DATA", str(empty))
    assert load_dataset("sst2") == FINE
    assert load_dataset("sst2") == FINE
    assert published["asked"] == ["https://x.org/SST-2.zip"]
    assert str(find_dataset("sst2")) == f"{cache}/SST-2.zip/SST-2/dev.tsv"
    folder = tmp_path / "data"
    write(folder / "sst2" / "dev.tsv", TABLE.replace("Fine.", "Bad."))
    monkeypatch.setenv("BERTBOOK_DATA", str(folder))
    assert load_dataset("sst2")["text"] == ["Bad."]


def test_a_download_without_the_split_is_an_error(published, cache):
    with pytest.raises(FileNotFoundError, match=f"not in {cache}"):
        load_dataset("sst2", "train")
    assert len(published["asked"]) == 1


def test_a_damaged_download_is_not_used(published, cache):
    load_dataset("sst2")
    whole = published["content"]
    (cache / "SST-2.zip").write_bytes(whole[:-1])
    published["content"] = whole + b"x"
    with pytest.raises(ValueError, match="that file is not kept"):
        load_dataset("sst2")
    published["content"] = whole
    assert load_dataset("sst2") == FINE


# Error.


@pytest.mark.parametrize(
    ("name", "offer"),
    [
        ("sst-2", "Did you mean 'sst2'"),
        ("SST2", "Did you mean 'sst2'"),
        ("CoLA", "Did you mean 'cola'"),
        ("STS-B", "Did you mean 'stsb'"),
        ("squadv2", "Did you mean 'squad_v2' or 'squad'"),
        ("SQuAD 2", "'squad'"),
        ("conll", "'conll2003'"),
        ("CoNLL-2003", "'conll2003'"),
        ("mnlii", "'mnli'"),
        ("opinion", "'opinions'"),
        ("imagenet", None),
        ("", None),
        (None, None),
        (["sst2"], "'sst2'"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name, offer):
    with pytest.raises(
        ValueError, match="`name` must be one of sst2, "
    ) as caught:
        bb.load_dataset(name)
    message = str(caught.value)
    assert message.endswith(f"Received: {name!r}.")
    assert ("Did you mean" in message) == (offer is not None)
    assert offer is None or offer in message


def test_an_unknown_split_is_refused_with_those_there_are():
    for name, split, those in (
        ("sst2", "test", "train, dev"),
        ("sst2", "validation", "train, dev"),
        ("mnli", "matched", "train, dev, dev_matched, dev_mismatched"),
        ("wnut17", "valid", "train, dev, test"),
        ("opinions", "", "train, dev"),
        ("opinions", ["train", "dev"], "train, dev"),
    ):
        message = (
            f"`split` of {name!r} must be one of {those}. Received: {split!r}."
        )
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            bb.load_dataset(name, split)


def test_a_missing_folder_is_refused(cache, tmp_path, monkeypatch):
    missing = str(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="`data_dir` must be a folder"):
        load_dataset("sst2", "dev", missing)
    monkeypatch.setenv("BERTBOOK_DATA", missing)
    with pytest.raises(
        FileNotFoundError, match="`BERTBOOK_DATA` must be a fol"
    ):
        load_dataset("sst2", "dev")


@pytest.mark.parametrize("folder", ["~nobody_there/data", "x" * 5_000])
def test_a_folder_that_the_system_cannot_open_is_refused(
    folder, cache, monkeypatch
):
    message = r"must be a path that can be opened\. Received: '"
    with pytest.raises(FileNotFoundError, match=f"`data_dir` {message}"):
        load_dataset("sst2", "dev", folder)
    monkeypatch.setenv("BERTBOOK_DATA", folder)
    with pytest.raises(FileNotFoundError, match=f"`BERTBOOK_DATA` {message}"):
        load_dataset("sst2", "dev")


@pytest.mark.parametrize("folder", [5, b"data", ["a"], "", "a\0b", True, {}])
def test_a_folder_that_is_no_path_is_refused(folder, cache):
    with pytest.raises(ValueError, match="`data_dir` must be the path of a"):
        load_dataset("sst2", "dev", folder)


def test_a_set_that_the_folder_lacks_is_refused_with_its_address(
    cache, tmp_path
):
    """Where the folder is given, nothing is downloaded instead."""
    with pytest.raises(FileNotFoundError) as caught:
        load_dataset("qnli", "train", tmp_path)
    message = str(caught.value)
    assert f"It is not in {tmp_path}." in message
    for part in (
        "qnli/train.tsv",
        "QNLI/train.tsv",
        "QNLIv2.zip",
        ".xz or .gz",
    ):
        assert part in message
    address = "https://dl.fbaipublicfiles.com/glue/data/QNLIv2.zip"
    assert message.endswith(f"Published at {address}.")
    assert not cache.exists()


def test_an_archive_without_the_split_is_refused(cache, tmp_path):
    write_archive(tmp_path / "SST-2.zip", {"SST-2/train.tsv": TABLE})
    assert load_dataset("sst2", "train", tmp_path) == FINE
    with pytest.raises(
        FileNotFoundError, match="split 'dev' of 'sst2' is missing"
    ):
        load_dataset("sst2", "dev", tmp_path)


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_conll2003_is_not_downloaded(split, cache, tmp_path, monkeypatch):
    for folder in None, tmp_path:
        if folder:
            monkeypatch.setenv("BERTBOOK_DATA", str(folder))
        with pytest.raises(FileNotFoundError) as caught:
            load_dataset("conll2003", split)
        message = str(caught.value)
        assert "https://trec.nist.gov/data/reuters/reuters.html" in message
        assert f"conll2003/{split}.txt" in message
        assert (f"It is not in {folder}" in message) == (folder is not None)


def test_without_network_the_error_says_what_to_do(published, monkeypatch):
    import requests

    def fail(*_):
        raise requests.ConnectionError("no route")

    monkeypatch.setattr(
        datasets.fetch.__globals__["time"], "sleep", lambda _: 0
    )
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", fail)
    with pytest.raises(ConnectionError) as caught:
        load_dataset("sst2")
    message = str(caught.value)
    assert "no route" in message
    assert "any of these is read" in message
    assert "SST-2/dev.tsv" in message


def test_a_broken_file_is_named_with_its_line(cache, tmp_path):
    path = write(tmp_path / "sst2" / "dev.tsv.xz", TABLE + "Bad.\t2\n")
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}, line 3: "):
        load_dataset("sst2", "dev", tmp_path)


# The real sets.

# Published numbers of rows: GLUE (Wang et al., 2019) as its files have them,
# Rajpurkar et al. (2016, 2018), Tjong Kim Sang and De Meulder (2003) without
# the marks of documents, Derczynski et al. (2017), Zellers et al. (2018). The
# numbers of `spa_eng` are ours, of the edition of April 2018.
COUNTS = {
    "sst2": {"train": 67_349, "dev": 872},
    "cola": {"train": 8_551, "dev": 1_043},
    "mrpc": {"train": 3_668, "dev": 408},
    "rte": {"train": 2_490, "dev": 277},
    "qnli": {"train": 104_743, "dev": 5_463},
    "mnli": {
        "train": 392_702,
        "dev": 9_815,
        "dev_matched": 9_815,
        "dev_mismatched": 9_832,
    },
    "qqp": {"train": 363_846, "dev": 40_430},
    "stsb": {"train": 5_749, "dev": 1_500},
    "swag": {"train": 73_546, "dev": 20_006},
    "squad": {"train": 87_599, "dev": 10_570},
    "squad_v2": {"train": 130_319, "dev": 11_873},
    "conll2003": {"train": 14_041, "dev": 3_250, "test": 3_453},
    "wnut17": {"train": 3_394, "dev": 1_009, "test": 1_287},
    "spa_eng": {"train": 112_371, "dev": 2_338, "test": 2_280},
}
# A folder may hold a part of these, as its own page says.
PARTS = {
    ("qnli", "train"): 24_000,
    ("qnli", "dev"): 4_346,
    ("squad", "dev"): 8_413,
    ("squad_v2", "dev"): 9_539,
}
REAL = [(name, split) for name, splits in COUNTS.items() for split in splits]


def test_all_sets_are_counted():
    kept = {name for name, known in SETS.items() if not known.ships}
    assert kept == set(COUNTS)
    for name, splits in COUNTS.items():
        assert list(splits) == list(SETS[name].files), name


@pytest.fixture
def real(shared_data, request):
    """A split of a real set; skips, by name, where the folder has none."""
    name, split = request.param
    try:
        return name, split, load_dataset(name, split, shared_data)
    except FileNotFoundError:
        pytest.skip(f"the folder of real data sets has no {name}, {split}")


@pytest.mark.slow
@pytest.mark.parametrize("real", REAL, indirect=True, ids=" ".join)
def test_real_sets_have_their_published_sizes(real):
    name, split, data = real
    lengths = {len(column) for column in data.values()}
    expected = {COUNTS[name][split], PARTS.get((name, split))}
    assert len(lengths) == 1
    assert lengths <= expected
    if "answers" in data:
        some = sum(map(bool, data["answers"]))
        assert (some < len(data["answers"])) == (name == "squad_v2")
        assert len(set(data["id"])) == len(data["id"])
    if "text" in data:
        assert all(isinstance(text, str) for text in data["text"])
    if "target" in data:
        assert all(data["source"])
        assert all(data["target"])
    if "label" in data and name != "stsb":
        assert set(data["label"]) == known_labels(name)


def known_labels(name):
    if name in ("rte", "qnli"):
        return {"entailment", "not_entailment"}
    if name == "mnli":
        return {"entailment", "neutral", "contradiction"}
    return {0, 1, 2, 3} if name == "swag" else {0, 1}


@pytest.mark.slow
def test_real_sets_have_their_published_labels(shared_data):
    """The shares of the published files, as others count them."""
    labels = Counter(load_dataset("sst2", "dev", shared_data)["label"])
    assert labels == {1: 444, 0: 428}
    labels = Counter(load_dataset("mrpc", "dev", shared_data)["label"])
    assert labels == {1: 279, 0: 129}
    data = load_dataset("conll2003", "dev", shared_data)
    assert sum(map(len, data["tokens"])) == 51_362
    begun = Counter(
        tag for tags in data["tags"] for tag in tags if tag[0] == "B"
    )
    assert begun == {
        "B-LOC": 1_837,
        "B-PER": 1_842,
        "B-ORG": 1_341,
        "B-MISC": 922,
    }
    scores = load_dataset("stsb", "dev", shared_data)["label"]
    assert (min(scores), max(scores)) == (0.0, 5.0)


@pytest.mark.slow
def test_real_tags_in_iob1_give_the_same_columns(shared_data, tmp_path):
    """CoNLL-2003 in IOB1, as published, gives the same columns."""
    expected = load_dataset("conll2003", "dev", shared_data)
    file = find_dataset("conll2003", "dev", shared_data)
    before, lines = "O", []
    for line in file.lines():
        fields = line.split()
        tag = fields[-1] if fields else "O"
        if tag.startswith("B-") and before[2:] != tag[2:]:
            fields[-1] = f"I-{tag[2:]}"
        before = tag
        lines.append(" ".join(fields) + "\n")
    text = "".join(lines)
    assert text.count("I-ORG") > 2 * text.count("B-ORG")
    write(tmp_path / "conll2003" / "eng.testa", text)
    assert load_dataset("conll2003", "dev", tmp_path) == expected


@pytest.mark.slow
def test_a_real_set_in_an_archive_gives_the_same_columns(shared_data, tmp_path):
    expected = load_dataset("sst2", "train", shared_data)
    text = "".join(find_dataset("sst2", "train", shared_data).lines())
    write_archive(tmp_path / "SST-2.zip", {"SST-2/train.tsv": text})
    assert load_dataset("sst2", "train", tmp_path) == expected
