"""Fine-tuning: losses and weights are those of transformers and PyTorch.

Both sides take the same weights, heads and batches, without dropout. Ours are
the losses that `finetune` reports. There the row of [PAD] never learns, here it
does where a softmax reaches it, as that of an answer: there it is made to.

Run by `make test-peers`, in an environment with PyTorch and transformers.
"""

import math

import numpy as np
import pytest
import safetensors.numpy

import bertbook as bb
from bertbook.batches.ragged import steps
from bertbook.finetuning.finetune import FinetuningOptions, task_of
from bertbook.runtime import keras
from bertbook.tasks.base import Settings
from bertbook.tasks.labels import names_of_tags
from bertbook.training.optimizers import WarmupLinearDecay, make_optimizer

torch = pytest.importorskip("torch", reason="needs PyTorch")
transformers = pytest.importorskip("transformers", reason="needs transformers")
BATCH_SIZE, EPOCHS, SEED = 8, 4, 3
ROWS = 5 * BATCH_SIZE - 3  # the last batch of an epoch is not full
RATE = 1e-4
SEVERAL = "multi_label_classification"
SEQUENCES = "BertForSequenceClassification"
# What a softmax over tokens or choices does not see: a value that all of them
# share. The gradient is rounding alone.
UNSEEN = (
    "key.bias",
    "qa_outputs.bias",
    "layer.3.output.LayerNorm.bias of questions",
    "classifier.bias of choices",
)


def first_rows(name, count=ROWS):
    """Returns the first rows of a sample's training set."""
    data = bb.load_dataset(name, "train")
    return {column: values[:count] for column, values in data.items()}


def lengths_as_labels():
    """Makes a number to be learned out of texts: a tenth of their words."""
    data = first_rows("opinions")
    return data | {"label": [len(t.split()) / 10 for t in data["text"]]}


def words_as_labels():
    """Makes several labels a text: which of three words it holds."""
    data = first_rows("opinions")
    words = [set(text.lower().split()) for text in data["text"]]
    wanted = ("the", "and", "a")
    labels = [[n for n in range(3) if wanted[n] in found] for found in words]
    return data | {"label": labels}


# A model, keywords of its head, and what it learns from.
CASES = {
    "opinions": (SEQUENCES, {}, lambda: first_rows("opinions")),
    "tags": ("BertForTokenClassification", None, lambda: first_rows("tags")),
    "questions": (
        "BertForQuestionAnswering",
        {},
        lambda: first_rows("questions", 36),  # a window each
    ),
    "choices": ("BertForMultipleChoice", {}, lambda: first_rows("choices")),
    "pairs": (SEQUENCES, {"num_labels": 3}, lambda: first_rows("pairs")),
    "several labels": (
        SEQUENCES,
        {"num_labels": 3, "problem_type": SEVERAL},
        words_as_labels,
    ),
    "a number": (SEQUENCES, {"num_labels": 1}, lengths_as_labels),
}


def write_start(kind, head, data, folder):
    """Writes mini with a head, drawn once, and without dropout."""
    if head is None:  # the tags of the data
        names = names_of_tags(data["tags"])
        head = {"id2label": dict(enumerate(names))}
    model = getattr(bb, kind).from_pretrained("mini", **head)
    model.config = model.config.replace(
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    model.save_pretrained(folder)


def draw_steps(model, data):
    """Returns the batches that `finetune` takes, those of all epochs."""
    task = task_of(model)(model, data, Settings())
    task.learn()
    a_epoch = math.ceil(len(task.rows) / BATCH_SIZE)
    assert len(task.rows) % BATCH_SIZE  # rows that count for nothing occur
    limit = model.config.max_position_embeddings
    endless = steps(task.rows, BATCH_SIZE, limit, SEED)
    return [next(endless) for _ in range(a_epoch * EPOCHS)]


def their_batch(x, y, weights):
    """Returns the tensors of a batch, rows that do not count left out.

    Tokens that do not count have the label -100, which is left out there.
    """
    if isinstance(y, dict):
        real = weights["start_logits"] > 0
        labels = {
            "start_positions": y["start_logits"],
            "end_positions": y["end_logits"],
        }
    elif weights.ndim == 2:
        real = weights.any(axis=1)
        labels = {"labels": np.where(weights > 0, y, -100)}
    else:
        real = weights > 0
        labels = {"labels": y}
    tensors = {n: torch.from_numpy(a[real]) for n, a in (x | labels).items()}
    return {
        name: tensor if tensor.is_floating_point() else tensor.long()
        for name, tensor in tensors.items()
    }


def make_peer(parameters, kept, options):
    """Returns PyTorch's AdamW, that decays all but the parameters `kept`."""
    return torch.optim.AdamW(
        [
            {"params": parameters, "weight_decay": options.weight_decay},
            {"params": kept, "weight_decay": 0.0},
        ],
        betas=(0.9, 0.999),
        eps=1e-6,
    )


def set_rate(optimizer, rate):
    """Sets the learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def train_there(model, batches, options):
    """Trains a model of transformers with PyTorch's AdamW.

    Returns:
        The loss of each step, and the norm of its gradients before clipping.
    """
    decayed, kept = [], []
    for name, parameter in model.named_parameters():
        is_kept = name.endswith("bias") or "LayerNorm" in name
        (kept if is_kept else decayed).append(parameter)
    optimizer = make_peer(decayed, kept, options)
    total = len(batches)
    schedule = WarmupLinearDecay(RATE, round(total * options.warmup), total)
    losses, norms = [], []
    for step, batch in enumerate(batches):
        set_rate(optimizer, float(schedule(step)))
        optimizer.zero_grad()
        loss = model(**their_batch(*batch)).loss
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(
            model.parameters(), options.clip_norm
        )
        optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
    return np.array(losses), np.array(norms)


def state(model):
    """Returns a copy of every tensor of a model of transformers."""
    return {n: t.numpy().copy() for n, t in model.state_dict().items()}


def train_both(case, options, tmp_path):
    """Trains both sides.

    Returns:
        The largest difference of the losses, their losses and the norms of
        their gradients, and how far the tensor that differs most is apart, as
        a share of how far it moved.
    """
    kind, head, make_data = CASES[case]
    data = make_data()
    write_start(kind, head, data, tmp_path / "start")
    theirs = getattr(transformers, kind).from_pretrained(
        tmp_path / "start", attn_implementation="eager"
    )
    ours = getattr(bb, kind).from_pretrained(tmp_path / "start")
    history = bb.finetune(
        ours,
        data,
        epochs=EPOCHS,
        learning_rate=RATE,
        batch_size=BATCH_SIZE,
        seed=SEED,
        options=options,
    )
    theirs.bert.embeddings.word_embeddings.padding_idx = None
    batches = draw_steps(ours, data)
    assert history["step"] == list(range(1, len(batches) + 1))
    start = state(theirs)
    losses, norms = train_there(theirs.train(), batches, options)
    ours.save_pretrained(tmp_path / "end")
    found = safetensors.numpy.load_file(tmp_path / "end/model.safetensors")
    wanted = state(theirs)
    assert found.keys() == wanted.keys()
    apart = {
        name: np.linalg.norm(found[name] - wanted[name])
        / np.linalg.norm(wanted[name] - start[name])
        for name in wanted
        if not f"{name} of {case}".endswith(UNSEEN)
        and not name.endswith(UNSEEN)
    }
    difference = np.abs(np.array(history["loss"]) - losses).max()
    farthest = max(apart, key=apart.get)
    print(
        f"{case}: {difference:.1e} of losses {losses[0]:.3f} to "
        f"{losses[-1]:.3f}; {farthest} {apart[farthest]:.1e} of its way"
    )
    return difference, losses, norms, apart[farthest]


def test_the_optimizer_takes_the_same_steps():
    gradient = np.array([0.0, 1e-9, -1e-7, 1e-6, 1e-4, -0.01, 0.3], "float32")
    start = np.linspace(-1.0, 1.0, len(gradient), dtype="float32")
    ours = keras.Variable(start, name="kernel")
    optimizer = make_optimizer(RATE)
    optimizer.build([ours])
    theirs = torch.nn.Parameter(torch.from_numpy(start.copy()))
    peer = make_peer([theirs], [], FinetuningOptions())
    for step in range(20):
        optimizer.apply([keras.ops.convert_to_tensor(gradient * 0.9**step)])
        set_rate(peer, RATE)
        theirs.grad = torch.from_numpy(gradient * np.float32(0.9**step))
        peer.step()
    found, wanted = keras.ops.convert_to_numpy(ours), theirs.detach().numpy()
    print(f"the optimizer: {np.abs(found - wanted).max():.1e}")
    np.testing.assert_allclose(found, wanted, rtol=0, atol=3e-7)


@pytest.mark.parametrize("case", CASES)
def test_twenty_steps_are_the_same(case, tmp_path):
    options = FinetuningOptions(evaluation_steps=1, verbose=False)
    difference, losses, norms, apart = train_both(case, options, tmp_path)
    assert len(losses) == 20
    assert losses[-5:].mean() < losses[:5].mean()
    assert norms.max() > options.clip_norm
    assert difference <= 1e-4
    assert apart <= 0.01


def test_strong_decay_and_clipping_are_the_same(tmp_path):
    options = FinetuningOptions(
        evaluation_steps=1, verbose=False, weight_decay=100.0, clip_norm=0.1
    )
    difference, _, norms, apart = train_both("opinions", options, tmp_path)
    assert norms.min() > options.clip_norm
    assert difference <= 1e-4
    assert apart <= 0.01
