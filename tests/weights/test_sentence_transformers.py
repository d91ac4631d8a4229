"""Folders of sentence-transformers: how they say that a vector is made."""

import json

import numpy as np
import pytest

import bertbook as bb
from bertbook.runtime import keras
from tests.helpers.models import VOCABULARY, to_numpy, write_hugging_face
from tests.reference import drawn

CONFIG = drawn.CONFIGS["gelu_new"]
TEXTS = ["fire", "a fire fire a", "ab " * 9]
ONE_MODE = ("mean", "cls", "max")
# How the library's older releases call the modes that it knows.
KEYS = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
pytestmark = pytest.mark.usefixtures("plain_graphs")
OLD = "sentence_transformers.models."
NEW = {
    "Transformer": "sentence_transformers.base.modules.transformer.Transformer",
    "Pooling": "sentence_transformers.sentence_transformer.modules.pooling"
    ".Pooling",
    "Normalize": "sentence_transformers.base.modules.normalize.Normalize",
}


def write_modules(folder, modes, more=("Normalize",), new=False, **files):
    """Writes what the library adds to a folder of Hugging Face's layout."""
    kinds = ["Transformer", "Pooling", *more]
    modules = [
        {
            "idx": number,
            "name": str(number),
            "path": f"{number}_{kind}" if number else "",
            "type": NEW[kind] if new else OLD + kind,
        }
        for number, kind in enumerate(kinds)
    ]
    pooling = {key: name in modes for name, key in KEYS.items()}
    pooling["word_embedding_dimension"] = CONFIG.hidden_size
    if new:
        pooling = {
            "embedding_dimension": CONFIG.hidden_size,
            "pooling_mode": modes[0] if len(modes) == 1 else list(modes),
            "include_prompt": True,
        }
    write(folder / "modules.json", modules)
    write(folder / "1_Pooling" / "config.json", pooling)
    for name, values in files.items():
        write(folder / f"{name}.json", values)


def write(path, values):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(values), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    """Drawn weights with a vocabulary, without a word of sentences."""
    folder = write_hugging_face(tmp_path / "model", CONFIG)
    text = "\n".join(VOCABULARY) + "\n"
    (folder / "vocab.txt").write_text(text, encoding="utf-8")
    return folder


def load(folder):
    return bb.BertEncoder.from_pretrained(folder)


def by_loops(encoder, mode, normalize=False, max_length=None, texts=TEXTS):
    """The definition, a text at a time."""
    vectors = []
    for text in texts:
        batch = encoder.tokenizer([text], max_length=max_length)
        rows = to_numpy(encoder(batch))["sequence_output"][0]
        row = {
            "mean": rows.sum(axis=0) / len(rows),
            "cls": rows[0],
            "max": rows.max(axis=0),
        }[mode]
        vectors.append(row / np.sqrt((row**2).sum()) if normalize else row)
    return np.array(vectors)


def check_close(received, expected):
    np.testing.assert_allclose(received, expected, atol=1e-5)


# Definition.


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("mode", ONE_MODE)
def test_the_folder_says_how_a_vector_is_made(mode, normalize, folder):
    more = ["Normalize"] if normalize else []
    write_modules(folder, [mode], more)
    encoder = load(folder)
    expected = by_loops(encoder, mode, normalize)
    check_close(encoder.embed_texts(TEXTS), expected)


@pytest.mark.parametrize("mode", ["cls", "max"])
def test_newer_releases_have_other_keys(mode, folder):
    write_modules(folder, [mode], new=True)
    encoder = load(folder)
    expected = by_loops(encoder, mode, True)
    check_close(encoder.embed_texts(TEXTS), expected)


@pytest.mark.parametrize("stored", ["cls", "weightedmean"])
def test_a_mode_that_is_given_wins_and_is_not_normalized(stored, folder):
    write_modules(folder, [stored], sentence_bert_config={"max_seq_length": 4})
    encoder = load(folder)
    for mode in ONE_MODE:
        expected = by_loops(encoder, mode)
        check_close(encoder.embed_texts(TEXTS, pooling=mode), expected)


def test_a_folder_that_says_nothing_has_means(folder):
    encoder = load(folder)
    assert "text_vectors" not in encoder.config.extra
    check_close(encoder.embed_texts(TEXTS), by_loops(encoder, "mean"))


def test_dropout_changes_nothing(folder):
    write_modules(folder, ["cls"], ["Dropout", "Normalize"])
    encoder = load(folder)
    check_close(encoder.embed_texts(TEXTS), by_loops(encoder, "cls", True))


def test_no_mode_of_an_older_release_means_the_mean(folder):
    write_modules(folder, [])
    encoder = load(folder)
    check_close(encoder.embed_texts(TEXTS), by_loops(encoder, "mean", True))


@pytest.mark.parametrize(
    ("settings", "tokenizer", "length"),
    [
        ({"max_seq_length": 6}, {}, 6),
        ({}, {"model_max_length": 5}, 5),
        ({"max_seq_length": 6}, {"model_max_length": 5}, 6),
        ({"max_seq_length": None}, {"model_max_length": 10**30}, None),
    ],
)
def test_texts_are_cut_where_the_folder_cuts_them(
    settings, tokenizer, length, folder
):
    write_modules(
        folder,
        ["mean"],
        sentence_bert_config=settings,
        tokenizer_config=tokenizer,
    )
    encoder = load(folder)
    expected = by_loops(encoder, "mean", True, length)
    check_close(encoder.embed_texts(TEXTS), expected)
    expected = by_loops(encoder, "mean", True, 4)
    check_close(encoder.embed_texts(TEXTS, max_length=4), expected)


def test_a_text_beyond_the_positions_is_cut_where_the_folder_speaks(folder):
    texts, limit = ["fire " * 600], CONFIG.max_position_embeddings
    with pytest.raises(ValueError, match="max_position_embeddings"):
        load(folder).embed_texts(texts)
    write_modules(folder, ["cls"])
    encoder = load(folder)
    expected = by_loops(encoder, "cls", True, limit, texts)
    check_close(encoder.embed_texts(texts), expected)
    with pytest.raises(ValueError, match="max_position_embeddings"):
        encoder.embed_texts(texts, "cls")


def test_case_and_prompt_of_the_folder_are_followed(folder):
    write_modules(
        folder,
        ["cls"],
        sentence_bert_config={"do_lower_case": True},
        config_sentence_transformers={
            "prompts": {"query": "A ", "none": ""},
            "default_prompt_name": "query",
        },
        tokenizer_config={"do_lower_case": False, "strip_accents": False},
    )
    encoder = load(folder)
    assert not encoder.tokenizer.lowercase
    vectors = encoder.embed_texts(["FIRE"])
    check_close(vectors, by_loops(encoder, "cls", True, texts=["a fire"]))
    other = by_loops(encoder, "cls", True, texts=["FIRE"])
    assert np.abs(vectors - other).max() > 1e-2


# Property: it stays.


def saved(encoder, tmp_path):
    encoder.save_pretrained(tmp_path / "again")
    return bb.BertEncoder.from_pretrained(tmp_path / "again")


def keras_file(encoder, tmp_path):
    encoder.save(tmp_path / "model.keras")
    return keras.saving.load_model(tmp_path / "model.keras")


@pytest.mark.parametrize("way", [saved, keras_file])
def test_what_the_folder_says_is_kept(way, folder, tmp_path):
    write_modules(
        folder,
        ["cls"],
        sentence_bert_config={"max_seq_length": 6},
        config_sentence_transformers={
            "prompts": {"query": "a "},
            "default_prompt_name": "query",
        },
    )
    encoder = load(folder)
    expected = encoder.embed_texts(TEXTS)
    again = way(encoder, tmp_path)
    np.testing.assert_array_equal(again.embed_texts(TEXTS), expected)


@pytest.mark.parametrize("way", [saved, keras_file])
def test_what_is_not_computed_stays_refused(way, folder, tmp_path):
    write_modules(folder, ["weightedmean"])
    again = way(load(folder), tmp_path)
    assert not (tmp_path / "again" / "modules.json").exists()
    with pytest.raises(ValueError, match="weightedmean"):
        again.embed_texts(TEXTS)


def test_an_older_model_leaves_nothing_in_the_folder(folder):
    plain = load(folder)
    write_modules(folder, ["cls"])
    plain.save_pretrained(folder)
    assert not (folder / "modules.json").exists()
    assert not (folder / "1_Pooling" / "config.json").exists()
    expected = plain.embed_texts(TEXTS)
    np.testing.assert_array_equal(load(folder).embed_texts(TEXTS), expected)


def test_a_model_with_a_head_keeps_it_in_its_config(folder, tmp_path):
    write_modules(folder, ["cls"])
    expected = load(folder).embed_texts(TEXTS)
    model = bb.BertForSequenceClassification.from_pretrained(folder)
    model.save_pretrained(tmp_path / "head")
    assert not (tmp_path / "head" / "modules.json").exists()
    again = load(tmp_path / "head").embed_texts(TEXTS)
    np.testing.assert_array_equal(again, expected)


# Error.


REFUSED = {
    "another mode": (["weightedmean"], {}, "weightedmean"),
    "the root of the length": (
        ["mean_sqrt_len_tokens"],
        {},
        "mean_sqrt_len_tokens",
    ),
    "the last token": (["lasttoken"], {}, "lasttoken"),
    "two modes": (["cls", "mean"], {}, "cls and mean"),
    "a dense layer": (
        ["cls"],
        {"more": ["Dense", "Normalize"]},
        "Transformer, Pooling, Dense, Normalize",
    ),
    "shorter vectors": (
        ["cls"],
        {"config_sentence_transformers": {"truncate_dim": 8}},
        "`truncate_dim` 8",
    ),
    "other processing": (
        ["cls"],
        {"sentence_bert_config": {"processing_kwargs": {"text": {}}}},
        "`processing_kwargs`",
    ),
}


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_computed_is_refused_by_name(case, new, folder):
    modes, options, name = REFUSED[case]
    write_modules(folder, modes, new=new and "more" not in options, **options)
    encoder = load(folder)
    with pytest.raises(ValueError, match="pass `pooling=`") as caught:
        encoder.embed_texts(TEXTS)
    assert name in str(caught.value)


def test_a_mode_of_a_later_release_is_refused_by_its_key(folder):
    write_modules(folder, [])
    write(folder / "1_Pooling" / "config.json", {"pooling_mode_best": True})
    encoder = load(folder)
    with pytest.raises(ValueError, match="pooling_mode_best"):
        encoder.embed_texts(TEXTS)


def test_a_prompt_that_is_left_out_of_the_mean_is_refused(folder):
    prompts = {"prompts": {"q": "a "}, "default_prompt_name": "q"}
    write_modules(folder, ["mean"], config_sentence_transformers=prompts)
    path = folder / "1_Pooling" / "config.json"
    write(path, {"pooling_mode": "mean", "include_prompt": False})
    encoder = load(folder)
    with pytest.raises(ValueError, match="`include_prompt` false"):
        encoder.embed_texts(TEXTS)


def test_a_missing_pooling_file_is_refused_by_its_name(folder):
    write_modules(folder, ["cls"])
    (folder / "1_Pooling" / "config.json").unlink()
    encoder = load(folder)
    with pytest.raises(ValueError, match="1_Pooling/config.json"):
        encoder.embed_texts(TEXTS)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("modules.json", {}, "must hold a list of modules"),
        ("modules.json", [], "must hold a list of modules"),
        ("modules.json", [{"path": ""}], "must hold a list of modules"),
        ("modules.json", [{"type": "x", "path": 5}], "must hold a list of mod"),
        ("1_Pooling/config.json", {"pooling_mode": 5}, "`pooling_mode` must"),
        (
            "sentence_bert_config.json",
            {"max_seq_length": 0},
            "`max_seq_length`",
        ),
        ("sentence_bert_config.json", [], "must hold a JSON object"),
        (
            "config_sentence_transformers.json",
            {"default_prompt_name": "q", "prompts": {"q": 5}},
            "`prompts` must",
        ),
    ],
)
def test_a_damaged_file_is_refused_by_name(name, values, message, folder):
    write_modules(folder, ["cls"])
    write(folder / name, values)
    with pytest.raises(ValueError, match=message) as caught:
        load(folder)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [5, {"pooling": 5}, {"pooling": "sum"}, {"mode": "cls"}, {"normalize": 1}],
)
def test_a_config_that_says_something_else_is_refused(values, folder):
    config = json.loads((folder / "config.json").read_text("utf-8"))
    write(folder / "config.json", {**config, "text_vectors": values})
    with pytest.raises(ValueError, match="`text_vectors.* must"):
        load(folder)


def test_a_model_that_an_older_release_kept_in_a_subfolder(folder, tmp_path):
    write_modules(folder, ["cls"])
    expected = load(folder).embed_texts(TEXTS)
    old = tmp_path / "old"
    old.mkdir()
    for name in ("modules.json", "1_Pooling"):
        (folder / name).rename(old / name)
    folder.rename(old / "0_Transformer")
    modules = json.loads((old / "modules.json").read_text("utf-8"))
    modules[0]["path"] = "0_Transformer"
    write(old / "modules.json", modules)
    assert np.abs(load(old).embed_texts(TEXTS) - expected).max() == 0
    assert bb.Tokenizer.from_pretrained(old).vocabulary == VOCABULARY
