"""What does a translator of KerasHub's layers learn in 20 minutes?

    BERTBOOK_DATA=FOLDER python -m experiments.keras_hub_translation [MINUTES]

FOLDER/spa_eng holds the pairs; data/models/en-es, which is compared with,
holds the vocabularies. The peer has the size of our translator, the same
batches in the same order, loss, optimizer and precision; its weights start as
KerasHub starts them. Afterward both stand on the same 300 pairs of dev,
translated greedily: the peer as it is then, ours as its log has it for that
minute.
"""

import csv
import json
import sys
import time
from pathlib import Path

import numpy as np

import bertbook as bb
from bertbook import locations
from bertbook.batches.feeding import feed_fit
from bertbook.runtime import keras
from bertbook.text import detokenize
from bertbook.translation import bitext
from bertbook.translation.metrics import score_translations
from bertbook.translation.train import compile_for_translation
from bertbook.translation.translate import encode_columns
from experiments.results import describe_machine
from tools.models.train_translation import RECIPE, REPORTING

MINUTES = 20
ROWS = 50  # of dev at a time


def main():
    """Trains the peer, scores it, and keeps the result."""
    bb.setup()
    minutes = float(sys.argv[1]) if sys.argv[1:] else MINUTES
    ours = bb.Seq2SeqTransformer.from_pretrained("en-es")
    train = encode_columns(ours, bb.load_dataset("spa_eng", "train"))
    dev = bb.load_dataset("spa_eng", "dev")
    dev = {n: rows[: REPORTING.translated] for n, rows in dev.items()}
    keras.utils.set_random_seed(RECIPE.seed)
    keras.config.set_dtype_policy(RECIPE.dtype)
    peer = build_peer(ours.config)
    steps = fit(peer, train, ours.config, minutes)
    written = translate(peer, ours, dev["source"])
    found = score_translations(written, dev["target"])
    result = {
        "minutes": minutes,
        "peer": {
            "steps": steps,
            "parameters": peer.count_params(),
            "bleu": round(found["bleu"], 2),
            "chrf": round(found["chrf"], 2),
        },
        "ours": ours_at(minutes) | {"parameters": ours.count_params()},
        "machine": describe_machine(),
        "samples": dict(zip(dev["source"][:5], written[:5], strict=True)),
    }
    text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    path = Path(__file__).parent / "results" / "keras_hub_translation.json"
    path.write_text(text, encoding="utf-8")
    print(text)


def build_peer(config):
    """Returns KerasHub's layers, put together as a translator."""
    from keras_hub import layers

    sizes = config.max_position_embeddings, config.hidden_size
    parts = {
        "intermediate_dim": config.intermediate_size,
        "num_heads": config.num_attention_heads,
        "dropout": config.hidden_dropout_prob,
    }
    embed = layers.TokenAndPositionEmbedding
    source = keras.Input([None], dtype="int32", name="input_ids")
    target = keras.Input([None], dtype="int32", name="decoder_input_ids")
    x = embed(config.vocab_size, *sizes, mask_zero=True)(source)
    for _ in range(config.num_hidden_layers):
        x = layers.TransformerEncoder(**parts)(x)
    y = embed(config.output_size, *sizes, mask_zero=True)(target)
    for _ in range(config.decoder_layers):
        y = layers.TransformerDecoder(**parts)(y, x)
    logits = keras.layers.Dense(config.output_size, dtype="float32")(y)
    return keras.Model(
        {"input_ids": source, "decoder_input_ids": target}, logits
    )


class Stop(keras.callbacks.Callback):
    """Ends a training after some minutes."""

    def __init__(self, minutes):
        super().__init__()
        self.end = time.perf_counter() + 60 * minutes
        self.steps = 0

    def on_train_batch_end(self, batch, logs=None):
        """Counts a step."""
        self.steps += 1
        if time.perf_counter() > self.end:
            self.model.stop_training = True


def fit(peer, train, config, minutes):
    """Trains the peer on our batches, and returns how many steps it did."""
    limit = config.max_position_embeddings
    stream = bitext.steps(train, RECIPE.batch_tokens, limit, RECIPE.seed)
    compile_for_translation(peer, RECIPE)
    stop = Stop(minutes)
    batches = (
        ({n: x[n] for n in ("input_ids", "decoder_input_ids")}, y, weights)
        for x, y, weights in stream
    )
    peer.fit(
        feed_fit(batches),
        steps_per_epoch=RECIPE.steps,
        shuffle=False,
        callbacks=[stop],
        verbose=0,
    )
    return stop.steps


def translate(peer, ours, texts):
    """Returns translations, the likeliest token each time."""
    limit = ours.config.max_position_embeddings
    given = ours.prompts(texts)["input_ids"]
    lines = []
    for first in range(0, len(texts), ROWS):
        part = given[first : first + ROWS]
        ids = np.zeros((len(part), limit), "int32")
        ids[:, 0] = ours.config.bos_token_id
        ended = np.zeros(len(part), bool)
        for place in range(limit - 1):
            batch = {"input_ids": part, "decoder_input_ids": ids}
            best = peer.predict_on_batch(batch)[:, place].argmax(axis=-1)
            ids[:, place + 1] = np.where(ended, 0, best)
            ended |= best == ours.config.eos_token_id
            if ended.all():
                break
        lines += [detokenize.spell(row, ours.target_tokenizer) for row in ids]
    return lines


def ours_at(minutes):
    """Returns what the log of our translator says for a minute."""
    path = locations.find_folder("en-es") / "log.csv"
    with open(path, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["dev_bleu"]]
    row = min(rows, key=lambda row: abs(float(row["seconds"]) - 60 * minutes))
    return {
        "minutes": round(float(row["seconds"]) / 60, 1),
        "steps": int(row["step"]),
        "bleu": float(row["dev_bleu"]),
        "chrf": float(row["dev_chrf"]),
    }


if __name__ == "__main__":
    main()
