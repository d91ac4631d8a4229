"""Each set in its official form: folders, archives and packings."""

import csv
import io
import json
import re

import pytest

from bertbook.datasets.catalog import SETS
from bertbook.datasets.download import downloads_of
from bertbook.datasets.load import find_dataset, load_dataset
from tests.helpers.set_files import rows, squad, write, write_archive

PAIR = {"text": ["a b", "e"], "text_pair": ["c d", "f"]}
ONE = {"text": ["They left.", "Left they."], "label": [1, 0]}


def swag():
    head = ["", "video-id", "fold-ind", "startphrase", "sent1", "sent2"]
    head += ["gold-source", "ending0", "ending1", "ending2", "ending3", "label"]
    text = io.StringIO(newline="")
    line = [
        "0",
        "v",
        "7",
        "He sat. Then",
        "He sat.",
        "Then",
        "gold",
        *"wxyz",
        "3",
    ]
    csv.writer(text).writerows([head, line])
    return text.getvalue()


def questions(answers):
    one = {"id": "q", "question": "Who?", "answers": answers}
    return json.dumps(squad(("Ann left.", [one])))


ANSWERS = [{"text": "Ann", "answer_start": 0}]
QUESTIONS = {"id": ["q"], "question": ["Who?"], "context": ["Ann left."]}
MNLI = (
    ("index", "promptID", "pairID", "genre"),
    ("sentence1_binary_parse", "sentence2_binary_parse"),
    ("sentence1_parse", "sentence2_parse", "sentence1", "sentence2"),
)
STSB = ("index", "genre", "filename", "year", "old_index", "source1", "source2")
# For each set: official files, the text of one, and what is to be read.
OFFICIAL = {
    "sst2": (
        {"train": "SST-2/train.tsv", "dev": "SST-2/dev.tsv"},
        rows(("sentence", "label"), ("They left. ", "1"), ("Left they. ", "0")),
        ONE,
    ),
    "cola": (
        {"train": "CoLA/train.tsv", "dev": "CoLA/dev.tsv"},
        rows(("gj04", "1", "", "They left."), ("cj99", "0", "*", "Left they.")),
        ONE,
    ),
    "mrpc": (
        {"train": "MRPC/train.tsv", "dev": "MRPC/dev.tsv"},
        "\ufeff"
        + rows(
            ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"),
            ("1", "7", "8", "a b", "c d"),
            ("0", "9", "10", "e", "f"),
        ),
        {**PAIR, "label": [1, 0]},
    ),
    "rte": (
        {"train": "RTE/train.tsv", "dev": "RTE/dev.tsv"},
        rows(
            ("index", "sentence1", "sentence2", "label"),
            ("0", "a b", "c d", "not_entailment"),
            ("1", "e", "f", "entailment"),
        ),
        {**PAIR, "label": ["not_entailment", "entailment"]},
    ),
    "qnli": (
        {"train": "QNLI/train.tsv", "dev": "QNLI/dev.tsv"},
        rows(
            ("index", "question", "sentence", "label"),
            ("0", "a b", "c d", "entailment"),
            ("1", "e", "f", "not_entailment"),
        ),
        {**PAIR, "label": ["entailment", "not_entailment"]},
    ),
    "mnli": (
        {
            "train": "MNLI/train.tsv",
            "dev": "MNLI/dev_matched.tsv",
            "dev_matched": "MNLI/dev_matched.tsv",
            "dev_mismatched": "MNLI/dev_mismatched.tsv",
        },
        rows(
            (*MNLI[0], *MNLI[1], *MNLI[2], "label1", "gold_label"),
            (*"01234567", "a b", "c d", "neutral", "contradiction"),
            (*"01234567", "e", "f", "neutral", "neutral"),
        ),
        {**PAIR, "label": ["contradiction", "neutral"]},
    ),
    "qqp": (
        {"train": "QQP/train.tsv", "dev": "QQP/dev.tsv"},
        rows(
            ("id", "qid1", "qid2", "question1", "question2", "is_duplicate"),
            ("0", "1", "2", "a b", "c d", "0"),
            ("3", "4", "5", "e", "f", "1"),
        ),
        {**PAIR, "label": [0, 1]},
    ),
    "stsb": (
        {"train": "STS-B/train.tsv", "dev": "STS-B/dev.tsv"},
        rows(
            (*STSB, "sentence1", "sentence2", "score"),
            (*"0123456", "a b", "c d", "5.000"),
            (*"0123456", "e", "f", "0.25"),
        ),
        {**PAIR, "label": [5.0, 0.25]},
    ),
    "swag": (
        {"train": "swag/train.csv", "dev": "swag/val.csv"},
        swag(),
        {
            "text": ["He sat."],
            "choices": [["Then w", "Then x", "Then y", "Then z"]],
            "label": [3],
        },
    ),
    "squad": (
        {"train": "squad/train-v1.1.json", "dev": "squad/dev-v1.1.json"},
        questions(ANSWERS),
        {**QUESTIONS, "answers": [ANSWERS]},
    ),
    "squad_v2": (
        {"train": "squad/train-v2.0.json", "dev": "squad/dev-v2.0.json"},
        questions([]),
        {**QUESTIONS, "answers": [[]]},
    ),
    "conll2003": (
        {
            "train": "conll2003/eng.train",
            "dev": "conll2003/eng.testa",
            "test": "conll2003/eng.testb",
        },
        "-DOCSTART- -X- -X- O\n\nEU NNP I-NP I-ORG\nsat VBD I-VP O\n\n",
        {"tokens": [["EU", "sat"]], "tags": [["B-ORG", "O"]]},
    ),
    "wnut17": (
        {
            "train": "wnut17/wnut17train.conll",
            "dev": "wnut17/emerging.dev.conll",
            "test": "wnut17/emerging.test.annotated",
        },
        "Rick\tB-creative-work\nran\tO\n\t\n@x\tO\n",
        {
            "tokens": [["Rick", "ran"], ["@x"]],
            "tags": [["B-creative-work", "O"], ["O"]],
        },
    ),
    "spa_eng": (
        {split: f"spa_eng/{split}.tsv" for split in ("train", "dev", "test")},
        rows(("Who left?", "¿Quién se fue?"), ("No, I stayed.", "No, yo no.")),
        {
            "source": ["Who left?", "No, I stayed."],
            "target": ["¿Quién se fue?", "No, yo no."],
        },
    ),
}
SPLITS = [(name, split) for name in OFFICIAL for split in OFFICIAL[name][0]]
ENDS = {"swag": "csv", "conll2003": "txt", "wnut17": "txt"}
# The same with the names of our folders and splits.
PLAIN = [
    (name, split)
    for name, split in SPLITS
    if "squad" not in name and (name, split) != ("mnli", "dev")
]


def test_this_file_tests_every_set_but_the_samples():
    assert set(OFFICIAL) == {n for n, known in SETS.items() if not known.ships}
    for name, (files, _, _) in OFFICIAL.items():
        assert list(files) == list(SETS[name].files), name


@pytest.mark.parametrize(("name", "split"), SPLITS)
@pytest.mark.parametrize("packing", ["", ".xz", ".gz"])
def test_official_files_are_found_and_read(name, split, packing, tmp_path):
    files, text, expected = OFFICIAL[name]
    path = write(tmp_path / (files[split] + packing), text)
    assert find_dataset(name, split, tmp_path).path == path
    assert load_dataset(name, split, tmp_path) == expected


@pytest.mark.parametrize(("name", "split"), PLAIN)
def test_files_named_like_sets_and_splits_are_found_and_read(
    name, split, tmp_path
):
    _, text, expected = OFFICIAL[name]
    end = ENDS.get(name, "tsv")
    path = write(tmp_path / name / f"{split}.{end}.xz", text)
    assert find_dataset(name, split, tmp_path).path == path
    assert load_dataset(name, split, tmp_path) == expected


ARCHIVES = [
    (name, archive)
    for name, known in SETS.items()
    for archive in known.archives
]


@pytest.mark.parametrize(("name", "archive"), ARCHIVES)
def test_official_archives_are_read(name, archive, tmp_path):
    files, text, expected = OFFICIAL[name]
    others = {"README.txt": "no", "__MACOSX/._train.tsv": "\0"}
    members = dict.fromkeys(files.values(), text)
    path = write_archive(tmp_path / archive, others | members)
    for split, member in files.items():
        assert str(find_dataset(name, split, tmp_path)) == f"{path}/{member}"
        assert load_dataset(name, split, tmp_path) == expected


def test_the_folder_of_a_set_comes_before_its_archive(tmp_path):
    _, text, expected = OFFICIAL["rte"]
    write_archive(tmp_path / "RTE.zip", {"RTE/dev.tsv": "no"})
    write(tmp_path / "RTE" / "dev.tsv", text)
    assert load_dataset("rte", "dev", tmp_path) == expected


def test_every_archive_that_is_downloaded_is_looked_into():
    found = {
        name: [one.place for one in downloads_of(name, "dev")]
        for name in OFFICIAL
        if SETS[name].archives
    }
    assert {n: [SETS[n].archives[0]] for n in found} == found


# MRPC comes as a corpus, of which a list of ids takes the dev rows.

CORPUS = rows(
    ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"),
    ("1", "7", "8", "a", "b"),
    ("0", "8", "7", "c", "d"),
    ("1", "9", "10", "e", "f"),
)


@pytest.mark.parametrize("ids", ["mrpc_dev_ids.tsv", "dev_ids.tsv"])
def test_the_corpus_of_mrpc_is_split_by_the_ids_beside_it(ids, tmp_path):
    write(tmp_path / "MRPC" / "msr_paraphrase_train.txt", "\ufeff" + CORPUS)
    with pytest.raises(FileNotFoundError, match="ids of the dev rows beside"):
        load_dataset("mrpc", "dev", tmp_path)
    write(tmp_path / "MRPC" / ids, "8\t7\n1\t2\n")
    dev = {"text": ["c"], "text_pair": ["d"], "label": [0]}
    train = {"text": ["a", "e"], "text_pair": ["b", "f"], "label": [1, 1]}
    assert load_dataset("mrpc", "dev", tmp_path) == dev
    assert load_dataset("mrpc", "train", tmp_path) == train
    write(tmp_path / "MRPC" / ids, "1\t2\n")
    for split in ("train", "dev"):
        with pytest.raises(ValueError, match="1 lines, and none of them is"):
            load_dataset("mrpc", split, tmp_path)


@pytest.mark.parametrize("packing", ["", ".xz"])
def test_translations_may_have_a_line_of_column_names(packing, tmp_path):
    files, text, expected = OFFICIAL["spa_eng"]
    named = rows(("english", "spanish")) + text
    write(tmp_path / (files["dev"] + packing), named)
    assert load_dataset("spa_eng", "dev", tmp_path) == expected


def test_damaged_lines_of_qqp_are_named(tmp_path):
    files, text, expected = OFFICIAL["qqp"]
    lines = text.splitlines(keepends=True)
    lines.insert(2, '\tWas he real?"\t0\n')
    write(tmp_path / files["train"], "".join(lines))
    with pytest.warns(UserWarning, match="1 damaged lines.*: 3") as caught:
        assert load_dataset("qqp", "train", tmp_path) == expected
    assert caught[0].filename == __file__


@pytest.mark.parametrize("name", sorted(set(OFFICIAL) - {"qqp"}))
def test_a_damaged_line_of_any_other_set_is_an_error(name, tmp_path):
    files, text, _ = OFFICIAL[name]
    write(tmp_path / files["dev"], text + "x\n")
    place = re.escape(files["dev"])
    with pytest.raises(
        ValueError, match=f"{place}(, line | is not valid JSON)"
    ):
        load_dataset(name, "dev", tmp_path)


def test_squad_1_has_an_answer_to_each_question(tmp_path):
    write(tmp_path / "squad" / "dev-v1.1.json", questions([]))
    with pytest.raises(ValueError, match="question 'q': there must be answers"):
        load_dataset("squad", "dev", tmp_path)


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize(
    ("row", "column"), [("\tAdiós", "source"), ("Bye\t ", "target")]
)
def test_a_pair_must_hold_both_texts(row, column, split, tmp_path):
    path = tmp_path / "spa_eng" / f"{split}.tsv"
    path.parent.mkdir()
    path.write_text(f"Hi\tHola\n{row}\n", encoding="utf-8")
    message = f"{split}.tsv, line 2: `{column}` must hold a text. Received: ''"
    with pytest.raises(ValueError, match=message):
        load_dataset("spa_eng", split, tmp_path)
