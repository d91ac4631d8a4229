"""`save_pretrained`: the old model or the new one, whatever happens."""

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import safetensors
import safetensors.numpy

import bertbook as bb
from bertbook.cli.main import main
from bertbook.decoder.config import CausalLMConfig, Seq2SeqConfig
from bertbook.files import files_named, folder_to_read
from bertbook.locations import SHARD
from bertbook.runtime import keras
from bertbook.training.run import RunFolder
from bertbook.weights import pretrained, tensors
from bertbook.weights.formats import read_checkpoint
from bertbook.weights.pretrained import named_tensors
from bertbook.weights.vocabulary import find_tokenizer
from tests.helpers.disks import largest_file
from tests.helpers.kills import Killed, stop_after

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "bad", "good", "##s"]
TURNED = [*PIECES[:5], *reversed(PIECES[5:])]
CONFIG = bb.BertConfig(
    vocab_size=8,
    hidden_size=6,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=10,
    max_position_embeddings=12,
)


def make_model(value, pieces=PIECES, labels=("neg", "pos")):
    """Returns a classifier whose tensors all hold one number."""
    model = bb.BertForSequenceClassification(
        CONFIG, id2label=dict(enumerate(labels))
    )
    model.tokenizer = bb.Tokenizer(pieces) if pieces else None
    for weight in model.weights:
        if "seed" not in weight.path:
            weight.assign(np.full(weight.shape, value, "float32"))
    return model


@pytest.fixture(scope="module")
def models():
    """An old and a new model, unlike in weights, labels and vocabulary."""
    return make_model(0.25), make_model(0.5, TURNED, ("pos", "neg"))


def what_is_in(folder):
    """Returns the number, the labels and the pieces that a folder loads as."""
    checkpoint = read_checkpoint(folder)
    numbers = {float(n) for a in checkpoint.arrays.values() for n in a.flat}
    tokenizer = find_tokenizer(checkpoint)
    pieces = tokenizer and tokenizer.vocabulary
    return numbers, list(checkpoint.config.id2label.values()), pieces


IN_OLD = {0.25}, ["neg", "pos"], PIECES
IN_NEW = {0.5}, ["pos", "neg"], TURNED


def contents(folder):
    """Returns the bytes of every file below a folder."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in paths}


def hidden_names(folder):
    return [
        p.name
        for p in folder.rglob("*")
        if p.name[0] == "." or "part" in p.name
    ]


# Kills.


@pytest.mark.parametrize(
    "shards", [(None, None), (None, 600), (600, None), (600, 900)]
)
def test_a_kill_after_any_operation_leaves_the_old_or_the_new_model(
    shards, models, tmp_path, monkeypatch
):
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    old, new = models
    seen = []
    for count in range(0, 200, 1 if shards == (None, None) else 5):
        folder = tmp_path / f"{count}"
        old.save_pretrained(folder, max_shard_bytes=shards[0])
        with monkeypatch.context() as patch:
            left = stop_after(patch, count)
            with contextlib.suppress(Killed):
                new.save_pretrained(folder, max_shard_bytes=shards[1])
        before = contents(folder)
        bb.Tokenizer.from_pretrained(folder)
        found = what_is_in(folder)
        assert found in (IN_OLD, IN_NEW), count
        assert contents(folder) == before, "loading moves nothing"
        seen.append(found == IN_NEW)
        old.save_pretrained(folder)
        assert what_is_in(folder) == IN_OLD
        assert not hidden_names(folder)
        if left[0] > 0:
            break
    assert seen == sorted(seen), "once new, always new"
    assert {True, False} <= set(seen)


def test_a_kill_while_a_first_model_is_moved_leaves_a_finished_run(
    models, tmp_path, monkeypatch
):
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    finished = []
    for count in range(5, 80):
        folder = tmp_path / f"{count}"
        with monkeypatch.context() as patch:
            left = stop_after(patch, count)
            with contextlib.suppress(Killed):
                models[1].save_pretrained(folder)
        run = RunFolder(folder, verbose=False)
        with run.hold():
            finished.append(run.is_finished())
            assert run.is_finished() == (folder / "vocab.txt").is_file()
        if run.is_finished():
            assert what_is_in(folder) == IN_NEW
        if left[0] > 0:
            break
    assert finished.count(False) > 2
    assert finished.count(True) > 5


def test_a_tokenizer_is_saved_whole_or_not_at_all(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    seen = set()
    for count in range(40):
        folder = tmp_path / f"{count}"
        bb.Tokenizer(PIECES).save_pretrained(folder)
        with monkeypatch.context() as patch:
            stop_after(patch, count)
            with contextlib.suppress(Killed):
                bb.Tokenizer(TURNED, lowercase=False).save_pretrained(folder)
        found = bb.Tokenizer.from_pretrained(folder)
        path = folder_to_read(folder) / "vocab.txt"
        lines = path.read_text("utf-8").split()
        assert lines == found.vocabulary
        assert (found.vocabulary == PIECES) == found.lowercase
        seen.add(found.lowercase)
    assert seen == {True, False}


SAVE_FOREVER = """
import sys
from tests.weights.test_saving import TURNED, make_model
models = make_model(0.25), make_model(0.5, TURNED, ("pos", "neg"))
print("ready", flush=True)
while True:
    for model in models:
        model.save_pretrained(sys.argv[1], max_shard_bytes=int(sys.argv[2]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("shard_bytes", [10**9, 200])
def test_a_process_killed_at_random_leaves_the_old_or_the_new_model(
    shard_bytes, tmp_path
):
    random = np.random.default_rng(0)
    command = [
        sys.executable,
        "-c",
        SAVE_FOREVER,
        str(tmp_path),
        str(shard_bytes),
    ]
    for _ in range(6):
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        time.sleep(random.uniform(0.05, 1.0))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert what_is_in(tmp_path) in (IN_OLD, IN_NEW)


def test_a_model_that_is_saved_while_the_old_one_is_read_waits(
    models, tmp_path, monkeypatch
):
    old, new = models
    old.save_pretrained(tmp_path)
    saver = threading.Thread(target=new.save_pretrained, args=[tmp_path])
    fill = pretrained._fill

    def fill_slowly(*args):
        saver.start()
        saver.join(0.2)
        return fill(*args)

    monkeypatch.setattr(pretrained, "_fill", fill_slowly)
    found = bb.BertForSequenceClassification.from_pretrained(tmp_path)
    saver.join()
    assert found.tokenizer.vocabulary == PIECES
    assert list(found.config.id2label.values()) == IN_OLD[1]
    assert what_is_in(tmp_path) == IN_NEW


@pytest.mark.slow
def test_a_loader_beside_two_savers_finds_one_model_each_time(models, tmp_path):
    models[0].save_pretrained(tmp_path)
    command = [sys.executable, "-c", SAVE_FOREVER, str(tmp_path)]
    savers = [
        subprocess.Popen([*command, str(size)], stdout=subprocess.PIPE)
        for size in (200, 10**9)
    ]
    seen = []
    try:
        for saver in savers:
            assert saver.stdout.readline() == b"ready\n"
        for _ in range(30):
            model = bb.BertForSequenceClassification.from_pretrained(tmp_path)
            labels = list(model.config.id2label.values())
            kernel = keras.ops.convert_to_numpy(model.classifier.kernel)
            numbers = {float(number) for number in kernel.flat}
            seen.append((numbers, labels, model.tokenizer.vocabulary))
    finally:
        for saver in savers:
            saver.kill()
            saver.communicate()
    assert all(found in (IN_OLD, IN_NEW) for found in seen)
    assert IN_OLD in seen
    assert IN_NEW in seen


# Full disks.


@pytest.mark.parametrize("shard_bytes", [None, 200])
def test_a_file_that_finds_no_room_leaves_the_old_model(
    shard_bytes, models, tmp_path
):
    old, new = models
    old.save_pretrained(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    largest = max(map(len, before.values()))
    refused = 0
    for room in range(0, largest, 97):
        try:
            with largest_file(room):
                new.save_pretrained(tmp_path, max_shard_bytes=shard_bytes)
        except OSError as error:
            message = str(error)
        else:
            break
        refused += 1
        assert f"{tmp_path} could not be written, and is as it" in message
        assert message.count("could not be written") == 1
        after = {path: path.read_bytes() for path in tmp_path.iterdir()}
        assert after == before, room
    assert refused > 5


@pytest.mark.slow
def test_a_full_disk_leaves_the_old_model_at_every_level(models, tmp_path):
    command = ["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(tmp_path)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a disk of its own cannot be mounted here: {error}")
    try:
        fill_and_save(models, tmp_path)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def assert_full(error):
    assert "No space left" in str(error)


def fill_and_save(models, disk):
    """Saves at every fill level of a small disk."""
    folder, filling = disk / "model", disk / "filling"
    models[0].save_pretrained(folder)
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    refused = saved = 0
    for size in range(free, 0, -2_048):
        filling.write_bytes(b"x" * size)
        try:
            models[1].save_pretrained(folder)
        except OSError as error:
            assert_full(error)
            assert what_is_in(folder) == IN_OLD
            assert not hidden_names(folder)
            refused += 1
        else:
            assert what_is_in(folder) == IN_NEW
            saved += 1
            filling.unlink()
            models[0].save_pretrained(folder)
        filling.unlink(missing_ok=True)
    assert refused > 5
    assert saved > 1


# What belongs together.


def test_weights_of_another_vocabulary_are_refused_with_both_names(
    models, tmp_path
):
    models[0].save_pretrained(tmp_path)
    bb.Tokenizer(TURNED).save_pretrained(tmp_path)
    with pytest.raises(
        ValueError, match=r"tokenizer\.json must.*model\.safete"
    ):
        bb.BertForSequenceClassification.from_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(
        ValueError, match=r"vocab\.txt must.*model\.safetensors"
    ):
        bb.BertForSequenceClassification.from_pretrained(tmp_path)


def test_a_vocabulary_may_be_written_in_another_way(models, tmp_path):
    models[0].save_pretrained(tmp_path)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8"))), "utf-8")
    assert what_is_in(tmp_path) == IN_OLD
    path.unlink()
    assert what_is_in(tmp_path) == IN_OLD


def test_weights_that_say_nothing_of_a_vocabulary_are_taken(models, tmp_path):
    models[0].save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    arrays = safetensors.numpy.load_file(path)
    safetensors.numpy.save_file(arrays, path, metadata={"format": "pt"})
    bb.Tokenizer(TURNED).save_pretrained(tmp_path)
    assert what_is_in(tmp_path) == (IN_OLD[0], IN_OLD[1], TURNED)


def test_a_shard_of_another_save_is_refused(models, tmp_path):
    for name, value in (("old", 0.25), ("new", 0.5)):
        make_model(value).save_pretrained(tmp_path / name, max_shard_bytes=200)
    index = tensors.INDEX
    shard = sorted((tmp_path / "old").glob("model-*"))[1].name
    for name in (shard, index):
        kept = (tmp_path / "new" / name).read_bytes()
        (tmp_path / "new" / name).write_bytes(
            (tmp_path / "old" / name).read_bytes()
        )
        with pytest.raises(ValueError, match="not written together"):
            read_checkpoint(tmp_path / "new")
        (tmp_path / "new" / name).write_bytes(kept)
    assert what_is_in(tmp_path / "new")[0] == {0.5}


def test_the_target_vocabulary_of_a_translator_is_compared_too(tmp_path):
    config = Seq2SeqConfig(
        vocab_size=8,
        target_vocab_size=8,
        hidden_size=6,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=10,
    )
    model = bb.Seq2SeqTransformer(config)
    model.tokenizer = bb.Tokenizer(PIECES)
    model.target_tokenizer = bb.Tokenizer(TURNED)
    model.save_pretrained(tmp_path)
    again = bb.Seq2SeqTransformer.from_pretrained(tmp_path)
    assert again.target_tokenizer.vocabulary == TURNED
    bb.Tokenizer(PIECES).save_pretrained(tmp_path / "target")
    with pytest.raises(ValueError, match=r"target/tokenizer\.json must hold"):
        bb.Seq2SeqTransformer.from_pretrained(tmp_path)
    model.target_tokenizer = None
    model.save_pretrained(tmp_path)
    assert not list((tmp_path / "target").iterdir())


def test_files_of_the_old_model_go_and_others_stay(models, tmp_path):
    (tmp_path / "README.md").write_text("card", "utf-8")
    models[0].save_pretrained(tmp_path, max_shard_bytes=200)
    (tmp_path / "added_tokens.json").write_text("{}", "utf-8")
    with pytest.warns(UserWarning, match="has no tokenizer.*vocab.txt"):
        make_model(0.5, None).save_pretrained(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
    ]


OF_A_USER = (
    "model_backup.safetensors",
    "model.fp16.safetensors",
    "models-of-anna.safetensors",
    "model-old-of-anna.safetensors",
    "model-00001-of-00002.backup.safetensors",
    "model-1-of-2.safetensors",
    "model.safetensors.index.json.bak",
    "my_Pooling/config.json",
    "2_Pooling/config.json",
    "tokenizer.json.orig",
    "my_vocab.txt",
    "target/notes.txt",
    "checkpoints/checkpoint-best.safetensors",
    "log.csv",
    "README.md",
)


def save_adapted(model, folder):
    adapted = make_model(0.25)
    bb.add_lora(adapted, rank=2)
    adapted.save_adapter(folder)


SAVES = {
    "model": lambda model, folder: model.save_pretrained(folder),
    "shards": lambda model, folder: model.save_pretrained(
        folder, max_shard_bytes=200
    ),
    "tokenizer": lambda model, folder: model.tokenizer.save_pretrained(folder),
    "adapter": save_adapted,
    "convert": lambda model, folder: main(
        ["convert", str(folder.parent / "source"), "--out", str(folder)]
    ),
}


@pytest.mark.parametrize("way", SAVES)
def test_a_save_removes_no_file_of_a_user(way, models, tmp_path):
    models[0].save_pretrained(tmp_path / "source")
    folder = tmp_path / "model"
    models[0].save_pretrained(folder, max_shard_bytes=200)
    for name in OF_A_USER:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("mine", "utf-8")
    SAVES[way](models[1], folder)
    kept = {n for n in OF_A_USER if (folder / n).is_file()}
    assert kept == set(OF_A_USER)
    assert {(folder / name).read_text("utf-8") for name in kept} == {"mine"}
    has_shards = bool(files_named(folder, SHARD))
    assert has_shards == (way not in ("model", "convert"))


def test_only_weights_make_a_tokenizer_that_of_an_older_model(tmp_path):
    bb.Tokenizer(PIECES).save_pretrained(tmp_path)
    (tmp_path / "model_backup.safetensors").write_text("mine", "utf-8")
    make_model(0.25, None).save_pretrained(tmp_path)
    assert what_is_in(tmp_path) == IN_OLD


def test_what_an_interrupted_save_left_is_an_older_model(
    models, tmp_path, monkeypatch
):
    """Its tokenizer is not beside its weights yet, and goes with them."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    for count in range(4, 30):
        folder = tmp_path / f"{count}"
        with monkeypatch.context() as patch:
            stop_after(patch, count)
            with contextlib.suppress(Killed):
                models[0].save_pretrained(folder)
        if (folder / ".saved" / "record.json").exists():
            with pytest.warns(UserWarning, match="has no tokenizer"):
                make_model(0.5, None).save_pretrained(folder)
            assert what_is_in(folder) == ({0.5}, IN_OLD[1], None)
            return
    raise AssertionError("no save was interrupted at that moment")


@pytest.mark.parametrize("way", ["target", "1_Pooling"])
def test_a_model_is_not_saved_through_a_link(way, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    for name in ("vocab.txt", "tokenizer.json", "config.json"):
        (mine / name).write_text("precious", "utf-8")
    before = contents(mine)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / way).symlink_to(mine)
    if way == "target":
        config = Seq2SeqConfig(
            vocab_size=8,
            target_vocab_size=8,
            hidden_size=6,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=10,
        )
        model = bb.Seq2SeqTransformer(config)
        model.target_tokenizer = bb.Tokenizer(TURNED)
    else:
        extra = {"text_vectors": {"pooling": "mean"}}
        model = bb.BertEncoder(CONFIG.replace(extra=extra))
    model.tokenizer = bb.Tokenizer(PIECES)
    with pytest.raises(ValueError, match=f"{way} must be a folder.* a link"):
        model.save_pretrained(folder)
    assert contents(mine) == before
    assert [path.name for path in folder.iterdir()] == [way]


def test_a_snapshot_of_links_is_read_and_its_links_are_replaced(
    models, tmp_path
):
    models[0].save_pretrained(tmp_path / "blobs")
    blobs = contents(tmp_path / "blobs")
    snapshot = tmp_path / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    for path in blobs:
        (snapshot / path.name).symlink_to(f"../../blobs/{path.name}")
    assert what_is_in(snapshot) == IN_OLD
    models[1].save_pretrained(snapshot)
    models[1].config.to_json(snapshot / "config.json")
    assert what_is_in(snapshot) == IN_NEW
    assert contents(tmp_path / "blobs") == blobs
    assert not any(path.is_symlink() for path in snapshot.iterdir())


def test_a_tokenizer_beside_no_weights_stays(tmp_path):
    bb.Tokenizer(PIECES).save_pretrained(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        make_model(0.25, None).save_pretrained(tmp_path)
    assert what_is_in(tmp_path) == IN_OLD


def test_a_causal_model_leaves_a_vocabulary_that_it_cannot_read(tmp_path):
    config = CausalLMConfig(
        vocab_size=8,
        hidden_size=6,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=10,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
    )
    model = bb.CausalLM(config)
    model.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "BPE"}}')
    model.save_pretrained(tmp_path)
    assert (tmp_path / "tokenizer.json").is_file()
    assert bb.CausalLM.from_pretrained(tmp_path).tokenizer is None


def test_the_same_model_gives_the_same_bytes(models, tmp_path):
    written = set()
    for number in range(6):
        folder = tmp_path / f"{number}"
        models[0].save_pretrained(
            folder, max_shard_bytes=(None, 200)[number % 2]
        )
        files = sorted(path for path in folder.iterdir())
        written.add(tuple((f.name, f.read_bytes()) for f in files))
    assert len(written) == 2, "one for each size of shards"


def test_other_libraries_see_how_long_an_input_may_be(models, tmp_path):
    models[0].save_pretrained(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    assert json.loads(path.read_text("utf-8"))["model_max_length"] == 12
    with safetensors.safe_open(tmp_path / "model.safetensors", "numpy") as file:
        assert file.metadata()["format"] == "pt"


def test_whoever_may_read_the_config_may_read_the_weights(models, tmp_path):
    models[0].save_pretrained(tmp_path / "a")
    models[0].save_pretrained(tmp_path / "b", max_shard_bytes=600)
    adapted = make_model(0.25)
    bb.add_lora(adapted, rank=2)
    adapted.save_adapter(tmp_path / "a")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"adapter.safetensors", "vocab.txt"}
    assert len({path.stat().st_mode for path in files}) == 1


# What is not saved.


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_weights_that_are_no_numbers_are_not_saved(value, dtype, tmp_path):
    model = make_model(0.25)
    model.save_pretrained(tmp_path)
    for weight in (model.classifier.bias, model.encoder.pooler.kernel):
        broken = np.array(keras.ops.convert_to_numpy(weight))
        broken.flat[-1] = value
        weight.assign(broken)
    message = (
        "finite. Received: NaN or infinity in pooler/kernel, classifier/bias"
    )
    with pytest.raises(ValueError, match=message):
        model.save_pretrained(tmp_path, dtype=dtype)
    assert what_is_in(tmp_path) == IN_OLD


def test_a_model_of_nothing_but_nan_is_named_by_its_first_tensors(tmp_path):
    message = r"in embeddings/token/embeddings, .* and \d+ more tensors\.$"
    with pytest.raises(ValueError, match=message):
        make_model(np.nan).save_pretrained(tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_a_folder_without_permission_is_one_error(
    models, tmp_path, monkeypatch
):
    models[0].save_pretrained(tmp_path)
    refused = PermissionError(errno.EACCES, "Permission denied")
    with monkeypatch.context() as patch:
        stop_after(patch, 0, refused, ("mkdir",))
        with pytest.raises(PermissionError, match="could not be written, and"):
            models[1].save_pretrained(tmp_path)
    assert what_is_in(tmp_path) == IN_OLD


@pytest.mark.parametrize("folder", [None, 3, "", b"x", "a\0b", "o\udcff", []])
def test_a_folder_that_is_none_is_refused_before_anything_is_written(
    folder, models, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for thing in (models[0], models[0].tokenizer):
        with pytest.raises(ValueError, match="^`folder` must be"):
            thing.save_pretrained(folder)
    assert not list(tmp_path.iterdir())


def test_a_file_is_not_saved_into(models, tmp_path):
    path = tmp_path / "model"
    path.write_text("mine", "utf-8")
    for thing in (models[0], models[0].tokenizer):
        with pytest.raises(ValueError, match="`folder` must be a folder"):
            thing.save_pretrained(path)
        with pytest.raises(OSError, match="could not be written, and is as"):
            thing.save_pretrained(path / "inside")
    assert path.read_text("utf-8") == "mine"


@pytest.mark.parametrize("size", [0, -1, 1.5, "1 GB", True, float("nan")])
def test_a_size_of_shards_that_is_none(size, models, tmp_path):
    with pytest.raises(
        ValueError, match="`max_shard_bytes` must be an integer"
    ):
        models[0].save_pretrained(tmp_path, max_shard_bytes=size)


# Rates as keywords.


def test_rates_of_dropout_may_be_set_while_loading(models, tmp_path):
    models[0].save_pretrained(tmp_path)
    load = bb.BertForSequenceClassification.from_pretrained
    model = load(
        tmp_path,
        hidden_dropout_prob=0.25,
        attention_probs_dropout_prob=0.0,
        classifier_dropout=0.5,
    )
    assert model.config.hidden_dropout_prob == 0.25
    assert model.config.attention_probs_dropout_prob == 0.0
    assert model.dropout.dropped == 2**15
    assert len(model.load_report.loaded) == len(named_tensors(model))
    with pytest.raises(ValueError, match=r"`hidden_dropout_prob` must be in"):
        load(tmp_path, hidden_dropout_prob=1.5)
    with pytest.raises(ValueError, match=r"`classifier_dropout` must be in"):
        load(tmp_path, classifier_dropout=-0.5)
