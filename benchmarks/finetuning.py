"""How fast is fine-tuning beside KerasHub's classifier?

    BERTBOOK_DATA=FOLDER python -m benchmarks.finetuning MODEL

MODEL is a folder with a BERT in the layout of Hugging Face, FOLDER holds
sst2. One hundred batches of 32 rows from one epoch of SST-2: ours are dealt by
length, the peer pads the same rows to 128, or each batch to its longest row.
Then both label the dev set. Both have the same weights and give the same
logits.
"""

import os
import sys

import numpy as np

import bertbook as bb
from benchmarks import turns
from bertbook.batches.ragged import compute, draw_batches
from bertbook.tasks.base import Settings
from bertbook.tasks.text_tasks import Texts
from bertbook.training.losses import classification_loss
from bertbook.training.optimizers import make_optimizer

BATCH_SIZE, STEPS, ROUNDS, LENGTH = 32, 100, 10, 128


def main():
    """Times training and inference, and keeps the results."""
    bb.setup()
    import keras

    folder = sys.argv[1]
    ours = load_ours(folder)
    train = Texts(ours, bb.load_dataset("sst2", "train"), Settings())
    train.learn()
    dev = Texts(ours, bb.load_dataset("sst2", "dev"), Settings())
    peers = {
        name: build_peer(folder, ours, jit_compile)
        for name, jit_compile in (("", "auto"), (", XLA", True))
    }
    check_same_logits(ours, peers[""], dev.rows)
    ours.compile(make_optimizer(2e-5), classification_loss("sum"))
    results = time_training(ours, peers, train.rows)
    results |= time_inference(ours, peers, dev.rows)
    for name, result in results.items():
        turns.report(name, result)
    backend = keras.backend.backend()
    packages = ["bertbook", "keras", "keras-hub", backend]
    turns.save(f"finetuning_{backend}", results, packages)


def load_ours(folder):
    """Returns our classifier with the peer's curve.

    KerasHub computes GELU by tanh, whatever the folder says.
    """
    loaded = bb.BertForSequenceClassification.from_pretrained(folder)
    config = loaded.config.replace(hidden_act="gelu_tanh")
    ours = bb.BertForSequenceClassification(config, loaded.num_labels)
    ours.set_weights(loaded.get_weights())
    ours.tokenizer = loaded.tokenizer
    return ours


def build_peer(folder, ours, jit_compile):
    """Returns KerasHub's classifier with the weights of ours."""
    import keras
    import keras_hub

    backbone = keras_hub.models.BertBackbone.from_preset(folder)
    model = keras_hub.models.BertTextClassifier(backbone, 2)
    pooler = backbone.get_layer("pooled_dense")
    pooler.set_weights(ours.encoder.pooler.get_weights())
    model.get_layer("logits").set_weights(ours.classifier.get_weights())
    model.compile(
        make_optimizer(2e-5), classification_loss(), jit_compile=jit_compile
    )
    assert keras.backend.backend() == os.environ["KERAS_BACKEND"]
    return model


def check_same_logits(ours, peer, rows):
    """Raises where the logits of 64 texts differ by over 1e-5."""
    x = rows.inputs(range(64), 64, 64)
    first = np.asarray(ours(x))
    second = np.asarray(peer(rename(x)))
    difference = np.abs(first - second).max()
    print(f"largest difference of logits: {difference:.1e}")
    if difference > 1e-5:
        sys.exit("The models do not compute the same.")


def time_training(ours, peers, rows):
    """Times rounds of steps, each on batches of its own."""
    lengths = rows.lengths()
    epoch = draw_batches(lengths, BATCH_SIZE, LENGTH, (0, 0))
    full = [batch for batch in epoch if len(batch[0]) == BATCH_SIZE][:STEPS]
    mine = [rows.step(*batch, BATCH_SIZE) for batch in full]
    numbers = np.concatenate([batch[0] for batch in full])
    numbers = np.random.default_rng(0).permutation(numbers)
    shuffled = numbers.reshape(STEPS, BATCH_SIZE)
    longest = [
        peer_step(rows, batch, int(lengths[batch].max())) for batch in shuffled
    ]
    padded = [peer_step(rows, batch, LENGTH) for batch in shuffled]
    print(
        f"{numbers.size:,} rows of {lengths[numbers].mean():.1f} tokens: ours "
        f"padded to {np.mean([x['input_ids'].shape[1] for x, *_ in mine]):.1f}"
        f", the longest to {np.mean([lengths[b].max() for b in shuffled]):.1f}"
    )
    functions = {
        f"training, peer pads to {LENGTH}{name}": Turn(peer, padded)
        for name, peer in peers.items()
    }
    functions["training, peer pads to the longest"] = Turn(peers[""], longest)
    Turn(ours, mine, rounds=1)()  # every shape has been seen
    functions["training, peer pads to the longest"].warm_up()
    return turns.in_turns(Turn(ours, mine), functions, ROUNDS)


class Turn:
    """One round of training steps; each call goes on where the last ended."""

    def __init__(self, model, batches, rounds=ROUNDS):
        self.model = model
        self.batches = batches
        self.size = len(batches) // rounds
        self.place = 0

    def __call__(self):
        """Takes the steps of one round."""
        part = self.batches[self.place : self.place + self.size]
        self.place = (self.place + self.size) % len(self.batches)
        for x, y, weights in part:
            self.model.train_on_batch(x, y, weights)

    def warm_up(self):
        """Takes all steps once."""
        for x, y, weights in self.batches:
            self.model.train_on_batch(x, y, weights)


def time_inference(ours, peers, rows):
    """Times the labels of the dev set."""
    lengths = rows.lengths()
    x = rename(rows.inputs(range(len(rows)), LENGTH, len(rows)))
    short = [
        rename(rows.inputs(part, lengths[part].max(), len(part)))
        for part in np.array_split(
            np.arange(len(rows)), -(-len(rows) // BATCH_SIZE)
        )
    ]
    functions = {
        f"inference, peer pads to {LENGTH}{name}": (
            lambda peer=peer: peer.predict(x, BATCH_SIZE, verbose=0)
        )
        for name, peer in peers.items()
    }
    functions["inference, peer pads to the longest"] = lambda: [
        peers[""].predict_on_batch(batch) for batch in short
    ]
    return turns.in_turns(
        lambda: compute(ours, rows, BATCH_SIZE), functions, turns.PAIRS
    )


def peer_step(rows, numbers, length):
    """Returns a batch as the peer takes it."""
    x, y, weights = rows.step(list(numbers), length, BATCH_SIZE)
    return rename(x), y, weights * BATCH_SIZE  # its loss is a mean


def rename(batch):
    """Returns a batch under the peer's names."""
    names = ("token_ids", "segment_ids", "padding_mask")
    return dict(zip(names, batch.values(), strict=True))


if __name__ == "__main__":
    main()
