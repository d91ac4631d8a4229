"""Adapters: what they change, what is trained, saved, loaded and merged."""

import math

import numpy as np
import pytest
import safetensors.numpy

import bertbook as bb
from bertbook.finetuning.run import optimizer_of
from bertbook.runtime import keras, ops
from bertbook.training import checkpoint
from bertbook.weights.lora import ADAPTER, has_adapters
from bertbook.weights.matrices import matrix_layers
from tests.helpers.disks import largest_file
from tests.helpers.every_model import (
    check_close,
    draw_batch,
    each_class,
    make,
    outputs_of,
)
from tests.helpers.toys import TOY, toy_config

KIND = "BertForSequenceClassification"


def teach(model, scale=0.5):
    """Gives everything that is trained another value, as training would."""
    random = np.random.default_rng(5)
    for weight in model.trainable_weights:
        weight.assign_add(random.normal(0, scale, weight.shape))


def taught(kind=KIND, **options):
    model = make(kind)
    bb.add_lora(model, **{"rank": 2} | options)
    teach(model)
    return model


def names_of(weights):
    return sorted(weight.path.rpartition("/")[2] for weight in weights)


@each_class(KIND, "BertEncoder", "Seq2SeqTransformer")
def test_adding_adapters_changes_no_output_and_freezes_the_rest(kind):
    model = make(kind)
    batch = draw_batch(model)
    before = outputs_of(model, batch)
    counted = bb.add_lora(model, rank=3)
    check_close(outputs_of(model, batch), before, 1e-6)
    head = [
        weight
        for weight in model.trainable_weights
        if "lora_" not in weight.path
    ]
    encoder = getattr(model, "encoder", model)
    assert not {id(w) for w in head} & {id(w) for w in encoder.weights}
    assert bool(head) == hasattr(model, "encoder")
    trained = sum(math.prod(w.shape) for w in model.trainable_weights)
    assert counted.trained == trained < counted.total
    assert f"{trained:,} of " in str(counted)


def test_a_layer_adds_the_product_of_its_adapters():
    model = make(KIND)
    layer = model.encoder.blocks[0].attention.query_key_value
    kernel, bias = (ops.convert_to_numpy(w) for w in (layer.kernel, layer.bias))
    bb.add_lora(model, rank=2, alpha=5)
    teach(model)
    down, up = (
        ops.convert_to_numpy(w)
        for w in (layer.lora_kernel_a, layer.lora_kernel_b)
    )
    x = np.random.default_rng(1).normal(size=(3, len(kernel)))
    expected = x @ (kernel + 5 / 2 * down @ up) + bias
    received = ops.convert_to_numpy(layer(x.astype("float32")))
    np.testing.assert_allclose(received, expected, atol=1e-5)


def test_layers_are_chosen_by_name():
    model = make("BertForTokenClassification")
    bb.add_lora(model, 2, layers=["expand", "output"])
    found = {x.name for x in matrix_layers(model) if x.lora_enabled}
    assert found == {"expand", "output"}


def test_a_pooler_that_no_file_held_is_trained(tmp_path):
    tagger = make("BertForTokenClassification")
    tagger.save_pretrained(tmp_path)  # without a pooler
    model = bb.BertForSequenceClassification.from_pretrained(tmp_path)
    bb.add_lora(model)
    paths = [weight.path for weight in model.trainable_weights]
    assert any("pooler/kernel" in path for path in paths)
    assert not any("pooler" in w.path for w in taught().trainable_weights)


def test_fit_moves_the_adapters_and_the_head_alone():
    model = make(KIND)
    batch, labels = draw_batch(model, rows=4), np.array([0, 1, 1, 0])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adamw", loss=loss, run_eagerly=True)
    model.fit(batch, labels, verbose=0)
    bb.add_lora(model, rank=2)
    with pytest.raises(ValueError, match="compile"):
        model.fit(batch, labels, verbose=0)
    before = {w.path: ops.convert_to_numpy(w).copy() for w in model.weights}
    optimizer = keras.optimizers.Adam(0.1)
    model.compile(optimizer, loss=loss, run_eagerly=True)
    model.fit(batch, labels, epochs=2, verbose=0)
    moved = {
        w.path
        for w in model.weights
        if (ops.convert_to_numpy(w) != before[w.path]).any()
    }
    assert moved == {weight.path for weight in model.trainable_weights}
    assert len(moved) == 2 * 2 + 2


@pytest.mark.parametrize("kind", [KIND, "BertForMaskedLM", "CausalLM"])
def test_an_adapter_is_saved_and_loaded(kind, tmp_path):
    model = taught(kind, alpha=3)
    batch = draw_batch(model)
    model.save_adapter(tmp_path)
    again = make(kind)
    again.load_adapter(tmp_path)
    check_close(outputs_of(again, batch), outputs_of(model, batch), 0)
    again.load_adapter(tmp_path)  # once more, into the same adapters
    check_close(outputs_of(again, batch), outputs_of(model, batch), 0)
    assert [path.name for path in tmp_path.iterdir()] == [ADAPTER]


def test_an_adapter_that_finds_no_room_leaves_the_old_one(tmp_path):
    taught().save_adapter(tmp_path)
    before = (tmp_path / ADAPTER).read_bytes()
    other = taught(alpha=5)
    for room in (0, 97, len(before) - 1):
        with largest_file(room), pytest.raises(OSError, match="[Nn]o|large"):
            other.save_adapter(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [ADAPTER]
        assert (tmp_path / ADAPTER).read_bytes() == before


def test_an_adapter_that_finds_no_room_leaves_no_folder(tmp_path):
    folder = tmp_path / "x" / "adapter"
    model = taught()
    message = rf"^{folder / ADAPTER} could not be written: File too large\.$"
    with largest_file(1_000), pytest.raises(OSError, match=message):
        model.save_adapter(folder)
    assert not list(tmp_path.iterdir())


def test_an_adapter_brings_the_names_of_labels(tmp_path):
    model = taught()
    model.config = model.config.replace(id2label={0: "bad", 1: "good"})
    model.save_adapter(tmp_path)
    again = make(KIND)
    again.load_adapter(tmp_path)
    assert again.config.id2label == {0: "bad", 1: "good"}


@pytest.mark.parametrize("kind", [KIND, "CausalLM", "Seq2SeqTransformer"])
def test_merging_and_saving_keep_what_was_learned(kind, tmp_path):
    model = taught(kind)
    batch = draw_batch(model)
    expected = outputs_of(model, batch)
    model.save_pretrained(tmp_path)
    again = type(model).from_pretrained(tmp_path)
    check_close(outputs_of(again, batch), expected, 1e-5)
    bb.merge_lora(model)
    check_close(outputs_of(model, batch), expected, 1e-5)
    assert not has_adapters(model)
    assert names_of(model.weights) == names_of(make(kind).weights)
    assert len(model.trainable_weights) == len(model.weights)
    bb.add_lora(model)  # a second time, on what was merged


def test_a_file_of_keras_holds_the_merged_model(tmp_path):
    model = taught()
    batch = draw_batch(model)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    check_close(outputs_of(again, batch), outputs_of(model, batch), 1e-5)


def test_adapters_still_learn_after_weights_are_loaded(tmp_path):
    model = taught()
    batch = draw_batch(model)
    expected = outputs_of(model, batch)
    model.save_weights(tmp_path / "own.weights.h5")
    model.load_weights(tmp_path / "own.weights.h5")
    check_close(outputs_of(model, batch), expected, 1e-5)
    layer = model.encoder.blocks[0].attention.query_key_value
    assert ops.convert_to_numpy(layer.lora_kernel_a).any()


@pytest.mark.usefixtures("plain_graphs")
def test_fine_tuning_with_adapters_resumes_and_ends_the_same(tmp_path):
    data = {"text": ["a b", "c d", "b a", "d c"] * 3, "label": [0, 1, 0, 1] * 3}
    base = make(KIND)
    base.save_pretrained(tmp_path / "base")

    def tune(epochs=2, rank=2):
        model = bb.BertForSequenceClassification.from_pretrained(
            tmp_path / "base"
        )
        bb.add_lora(model, rank)
        options = bb.FinetuningOptions(verbose=False)
        history = bb.finetune(
            model,
            data,
            data,
            epochs=epochs,
            batch_size=6,
            learning_rate=1e-2,
            out=tmp_path / "run",
            options=options,
        )
        return model, history

    first, history = tune()
    second, again = tune()  # finished: read from the folder
    assert again == history
    for ours, theirs in zip(first.weights, second.weights, strict=True):
        np.testing.assert_array_equal(
            ops.convert_to_numpy(ours), ops.convert_to_numpy(theirs)
        )
    merged = bb.BertForSequenceClassification.from_pretrained(tmp_path / "run")
    batch = draw_batch(first)
    check_close(outputs_of(merged, batch), outputs_of(first, batch), 1e-5)
    with pytest.raises(ValueError, match=r"`lora.rank` was 2, now 3"):
        tune(rank=3)


class KilledError(Exception):
    """Stands for a kill."""


@pytest.mark.slow  # ten seconds and more
@pytest.mark.usefixtures("plain_graphs")
def test_adapters_of_a_run_that_stopped_end_as_of_one_that_did_not(
    tmp_path, monkeypatch
):
    data = {"text": ["a b", "c d", "b a"] * 2, "label": [0, 1, 0] * 2}
    make(KIND).save_pretrained(tmp_path / "base")
    save = checkpoint.save_checkpoint

    def save_and_stop(folder, step, *arguments):
        save(folder, step, *arguments)
        if step == 2:
            raise KilledError

    def tune(name, seed):
        model = bb.BertForSequenceClassification.from_pretrained(
            tmp_path / "base"
        )
        keras.utils.set_random_seed(seed)  # adapters are drawn
        bb.add_lora(model, 2)
        bb.finetune(
            model,
            data,
            epochs=2,
            batch_size=3,
            learning_rate=1e-2,
            out=tmp_path / name,
            options=bb.FinetuningOptions(
                verbose=False, layer_decay=0.5, checkpoint_steps=2
            ),
        )
        return model

    whole = tune("whole", 1)
    monkeypatch.setattr(checkpoint, "save_checkpoint", save_and_stop)
    with pytest.raises(KilledError):
        tune("stopped", 1)
    monkeypatch.setattr(checkpoint, "save_checkpoint", save)
    stopped = tune("stopped", 2)
    for ours, theirs in zip(whole.weights, stopped.weights, strict=True):
        np.testing.assert_array_equal(
            ops.convert_to_numpy(ours), ops.convert_to_numpy(theirs)
        )
    name = "model.safetensors"
    assert (tmp_path / "stopped" / name).read_bytes() == (
        tmp_path / "whole" / name
    ).read_bytes()


@pytest.mark.parametrize(
    "layers", [["query_key_value"], ["contract", "output"]]
)
def test_the_rate_of_an_adapter_is_that_of_its_layer(layers):
    model = make(KIND)
    bb.add_lora(model, 2, layers=layers)
    rates = optimizer_of(model, 0.5).args[0]
    for weight, rate in zip(model.trainable_variables, rates, strict=True):
        assert rate == (0.5 if "block_0" in weight.path else 1.0)
    assert rates.count(0.5) == 2 * len(layers)


# What cannot be done.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 0}, "`rank` must be an integer >= 1"),
        ({"rank": 2.0}, "`rank` must be an integer >= 1"),
        ({"rank": True}, "`rank` must be an integer >= 1"),
        ({"rank": 13}, "`rank` must be at most 12, the smaller side of .*que"),
        ({"rank": 10**9}, "`rank` must be at most 12, the smaller side of"),
        (
            {"rank": 13, "layers": ["expand", "output"]},
            "`rank` must be at most 12",
        ),
        ({"alpha": 0}, "`alpha` must be a number above 0"),
        ({"alpha": float("nan")}, "`alpha` must be a number above 0"),
        ({"alpha": "8"}, "`alpha` must be a number above 0"),
        ({"layers": "output"}, "`layers` must be a list of some of contract"),
        ({"layers": []}, "`layers` must be a list of some of contract"),
        ({"layers": ["query"]}, "`layers` must be a list of some of contract"),
        ({"layers": ["pooler"]}, "`layers` must be a list of some of contract"),
    ],
)
def test_a_wrong_option_is_refused(options, message):
    model = make(KIND)
    with pytest.raises(ValueError, match=f"{message}.* Received: "):
        bb.add_lora(model, **options)
    assert len(model.trainable_weights) == len(model.weights)


@pytest.mark.parametrize("count", range(4))
def test_an_error_while_adapters_are_added_leaves_the_model(count, monkeypatch):
    """Such as that of a memory that is full."""
    model = make(KIND)
    model.encoder.embeddings.trainable = False
    batch = draw_batch(model)
    expected = outputs_of(model, batch)
    before = [(w.path, w.trainable) for w in model.weights]
    made = keras.layers.Dense.add_weight

    def fail(layer, *args, **options):
        if options["name"].startswith("lora"):
            left[0] -= 1
            if left[0] < 0:
                raise MemoryError
        return made(layer, *args, **options)

    left = [count]
    with monkeypatch.context() as patch:
        patch.setattr(keras.layers.Dense, "add_weight", fail)
        with pytest.raises(MemoryError):
            bb.add_lora(model, 2)
    assert [(w.path, w.trainable) for w in model.weights] == before
    assert not model.encoder.embeddings.trainable
    assert model.lora is None
    assert not has_adapters(model)
    check_close(outputs_of(model, batch), expected, 0)
    with pytest.raises(ValueError, match="cannot add new"):  # closed again
        model.encoder.blocks[
            0
        ].attention.query_key_value.extra = keras.Variable(1.0)
    bb.add_lora(model, 2)


def test_a_quantized_head_is_not_saved_as_an_adapter(tmp_path):
    model = taught()
    model.save_adapter(tmp_path)
    before = (tmp_path / ADAPTER).read_bytes()
    model.classifier.quantize("int8")
    for function in (model.save_adapter, model.load_adapter):
        with pytest.raises(ValueError, match="floats.* Received: 'int8' in"):
            function(tmp_path)
    assert (tmp_path / ADAPTER).read_bytes() == before


def test_an_adapter_is_not_written_through_a_link(tmp_path):
    mine = tmp_path / "mine"
    mine.write_text("precious", "utf-8")
    (tmp_path / ADAPTER).symlink_to(mine)
    model = taught()
    model.save_adapter(tmp_path)
    assert mine.read_text("utf-8") == "precious"
    again = make(KIND)
    again.load_adapter(tmp_path)
    batch = draw_batch(model)
    check_close(outputs_of(again, batch), outputs_of(model, batch), 0)


def test_adapters_are_added_once_to_floats():
    model = taught()
    with pytest.raises(ValueError, match="has adapters: `merge_lora`.*rank 2"):
        bb.add_lora(model)
    with pytest.raises(ValueError, match="`frozen_layers` must be None"):
        bb.finetune(
            model,
            {"text": ["a"], "label": [0]},
            options=bb.FinetuningOptions(frozen_layers=1),
        )
    model = make(KIND)
    model.encoder.blocks[0].feed_forward.expand.quantize("int8")
    with pytest.raises(ValueError, match="must hold floats.*'int8'"):
        bb.add_lora(model)
    with pytest.raises(ValueError, match="must be a model of bertbook"):
        bb.add_lora(keras.Sequential())


def test_there_must_be_adapters_to_merge_or_save(tmp_path):
    model = make(KIND)
    with pytest.raises(ValueError, match="must have adapters"):
        bb.merge_lora(model)
    with pytest.raises(ValueError, match="needs the adapters of `add_lora`"):
        model.save_adapter(tmp_path / "new")
    model.classifier.quantize("int8")
    model.classifier.enable_lora(1)
    with pytest.raises(ValueError, match="then quantize.*'int8'"):
        bb.merge_lora(model)
    assert not (tmp_path / "new").exists()


def spoil(array):
    array.flat[0] = np.nan
    return array


FAULTS = {
    "other base": (lambda path: None, "belongs to another base"),
    "other model": (lambda path: None, "belongs to a BertForSequenceClassif"),
    "other rank": (lambda path: None, "holds adapters with `rank` 2"),
    "damaged": (lambda path: path.write_bytes(b"x" * 99), "is damaged"),
    "no adapter": (
        lambda path: safetensors.numpy.save_file({"a": np.ones(2)}, path),
        "must hold an adapter of `save_adapter`",
    ),
    "not a number": (lambda path: change(path, spoil), "NaN or infinity in cl"),
    "other shape": (lambda path: change(path, lambda a: a[:-1]), "has shape"),
    "missing": (lambda path: change(path, lambda a: None), "is missing"),
}


def change(path, function, name="classifier/bias"):
    with safetensors.safe_open(path, "numpy") as file:
        metadata = file.metadata()
        arrays = {n: file.get_tensor(n) for n in file.keys()}  # noqa: SIM118
    arrays[name] = function(arrays[name].copy())
    arrays = {n: a for n, a in arrays.items() if a is not None}
    safetensors.numpy.save_file(arrays, path, metadata=metadata)


@pytest.mark.parametrize("fault", FAULTS)
def test_an_adapter_that_does_not_fit_changes_nothing(fault, tmp_path):
    taught().save_adapter(tmp_path)
    function, message = FAULTS[fault]
    function(tmp_path / ADAPTER)
    model = make(KIND)
    if fault == "other model":
        model = make("BertForTokenClassification")
    elif fault == "other base":
        model = bb.BertForSequenceClassification(toy_config())
        model.tokenizer = TOY
    elif fault == "other rank":
        bb.add_lora(model, 3)
    before = model.get_weights()
    with pytest.raises(ValueError, match=message):
        model.load_adapter(tmp_path)
    assert has_adapters(model) == (fault == "other rank")
    for ours, theirs in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_what_is_no_longer_an_adapter_is_not_saved(tmp_path):
    model = taught()
    model.trainable = True
    model.encoder.embeddings.token.embeddings.assign_add(
        np.ones(model.encoder.embeddings.token.embeddings.shape)
    )
    with pytest.raises(ValueError, match="must be as they were at `add_lora`"):
        model.save_adapter(tmp_path)
    model = taught()
    model.classifier.bias.assign([np.nan, 0.0])
    with pytest.raises(ValueError, match=r"NaN or infinity in classifier/bias"):
        model.save_adapter(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError, match="No adapter at"):
        model.load_adapter(tmp_path)
