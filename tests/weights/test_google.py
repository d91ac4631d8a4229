"""TensorFlow 1 checkpoints: slots of optimizers, several steps in a folder."""

import numpy as np
import pytest

import bertbook as bb
from bertbook.weights.formats import find_google, read_checkpoint
from tests.helpers.models import GOOGLE_CONFIG, write_google
from tests.reference import drawn

WORDS = "bert/embeddings/word_embeddings"
KERNEL = "bert/encoder/layer_1/attention/self/query/kernel"
SLOT = "state of the optimizer"
AVERAGE = "a moving average of a weight, not the weight"
SLOTS = {
    f"{WORDS}/BERTAdam": SLOT,
    f"{WORDS}/BERTAdam_1": SLOT,
    f"{WORDS}/LAMB_1": SLOT,
    f"{KERNEL}/Adafactor/vr": SLOT,
    f"{KERNEL}/Momentum": SLOT,
    f"{KERNEL}/adam_m": SLOT,
    "training/LAMB/" + f"{KERNEL}/m": SLOT,
    "cls/predictions/output_bias/adam_v": SLOT,
    f"{WORDS}/ExponentialMovingAverage": AVERAGE,
    "output_weights/adam_m": SLOT,
    "beta1_power": SLOT,
    "beta2_power": SLOT,
    "global_step": SLOT,
    "loss_scale": SLOT,
}
ZERO = np.zeros((), "float32")


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow", reason="reads Google's layout")


def test_what_an_optimizer_keeps_is_skipped_whatever_it_is_called(tf, tmp_path):
    folder = tmp_path / "google"
    write_google(tf, folder, with_adam=False, **dict.fromkeys(SLOTS, ZERO))
    checkpoint = read_checkpoint(folder)
    assert {name: checkpoint.skipped[name] for name in SLOTS} == SLOTS
    assert checkpoint.skipped == SLOTS
    assert f"skipped {WORDS}/BERTAdam: {SLOT}" in str(
        bb.BertEncoder.from_pretrained(folder).load_report
    )


@pytest.mark.parametrize(
    "name",
    [
        "bert/encoder/layer_1/attention/self/extra/kernel",
        "bert/encoder/layer_1/attention/self/query/kernels",
        "bert/embeddings/word_embeddings_2",
        "bert/embeddings/norm",
    ],
)
def test_an_unknown_tensor_of_the_encoder_is_no_slot(tf, name, tmp_path):
    write_google(tf, tmp_path / "google", with_adam=False, **{name: ZERO})
    with pytest.raises(ValueError, match=f"{name} does not belong to"):
        bb.BertEncoder.from_pretrained(tmp_path / "google")


@pytest.mark.parametrize("name", ["output_weights", "cls/squad/output_weights"])
def test_a_head_is_no_slot(tf, name, tmp_path):
    head = {
        name: np.ones((2, GOOGLE_CONFIG.hidden_size), "float32"),
        name.replace("weights", "bias"): np.ones(2, "float32"),
        f"{name}/adam_m": ZERO,
    }
    write_google(tf, tmp_path / "google", with_adam=True, **head)
    kind = bb.BertForSequenceClassification
    if "squad" in name:
        kind = bb.BertForQuestionAnswering
    report = kind.from_pretrained(tmp_path / "google").load_report
    assert not [n for n in report.drawn if "classifier" in n or "span" in n]


# Several checkpoints in a folder.


def write_indexes(folder, names, last=None):
    for name in names:
        (folder / f"{name}.index").write_bytes(b"")
    if last is not None:
        (folder / "checkpoint").write_text(last, "utf-8")
    return folder


STEPS = ["model.ckpt-9", "model.ckpt-10", "model.ckpt-100"]
LAST = (
    'model_checkpoint_path: "{}"\nall_model_checkpoint_paths: "model.ckpt-9"\n'
)


@pytest.mark.parametrize(
    ("names", "last", "expected"),
    [
        (["any"], None, "any"),
        (["any"], LAST.format("gone"), "any"),
        (STEPS, None, "model.ckpt-100"),
        (STEPS, LAST.format("model.ckpt-10"), "model.ckpt-10"),
        (STEPS, LAST.format("/home/me/run 1/model.ckpt-9"), "model.ckpt-9"),
        (STEPS, LAST.format("C:\\\\runs\\\\model.ckpt-9"), "model.ckpt-9"),
        (STEPS, "nothing of use", "model.ckpt-100"),
        ([*STEPS, "bert_model.ckpt"], None, "bert_model.ckpt"),
        (
            [*STEPS, "bert_model.ckpt"],
            LAST.format("model.ckpt-100"),
            "model.ckpt-100",
        ),
    ],
)
def test_which_of_several_checkpoints_is_read(names, last, expected, tmp_path):
    folder = write_indexes(tmp_path, names, last)
    prefix, skipped = find_google(folder)
    assert prefix == folder / expected
    assert skipped.keys() == set(names) - {expected}
    assert all(expected in why for why in skipped.values())


@pytest.mark.parametrize(
    ("names", "last"),
    [
        (["a", "b"], None),
        (["a-1", "b-2"], None),
        ([*STEPS, "a"], None),
        (STEPS, LAST.format("model.ckpt-11")),
    ],
)
def test_an_open_choice_is_an_error_that_lists_the_checkpoints(
    names, last, tmp_path
):
    with pytest.raises(ValueError, match=r"must hold one checkpoint, or") as e:
        find_google(write_indexes(tmp_path, names, last))
    assert all(name in str(e.value) for name in names)


def test_the_last_of_several_steps_is_loaded_and_the_others_are_named(
    tf, tmp_path
):
    folder = tmp_path / "google"
    write_google(tf, folder, with_adam=True)
    for path in list(folder.glob("bert_model.ckpt*")):
        bytes_ = path.read_bytes()
        for step in (10, 20):
            name = path.name.replace("bert_model.ckpt", f"model.ckpt-{step}")
            (folder / name).write_bytes(bytes_)
        path.unlink()
    (folder / "model.ckpt-10.index").write_bytes(b"damaged")
    (folder / "checkpoint").unlink()
    encoder = bb.BertEncoder.from_pretrained(folder)
    report = str(encoder.load_report)
    assert "skipped model.ckpt-10: another checkpoint" in report
    assert "model.ckpt-20 is read" in report
    stored = drawn.hugging_face_arrays(GOOGLE_CONFIG)
    table = encoder.embeddings.token.embeddings.numpy()
    assert (table == stored["embeddings.word_embeddings.weight"]).all()


def test_a_checkpoint_of_objects_is_named_as_such(tf, tmp_path):
    write_google(tf, tmp_path / "google", with_adam=False)
    for path in (tmp_path / "google").glob("bert_model.ckpt*"):
        path.unlink()
    variable = tf.Variable([1.0])
    prefix = str(tmp_path / "google" / "bert_model.ckpt")
    tf.train.Checkpoint(variable=variable).write(prefix)
    with pytest.raises(ValueError, match="one of objects, as TensorFlow 2"):
        bb.BertEncoder.from_pretrained(tmp_path / "google")
