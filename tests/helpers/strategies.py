"""What `test_strategies.py` runs: plain `fit` under a strategy of TensorFlow.

    python strategies.py none|mirrored|workers ...

It prints the losses of each as JSON. TF_CONFIG says who the workers are.
"""

import json
import sys

import numpy as np
import tensorflow as tf

ROWS, LENGTH, STEPS = 8, 12, 20


def make_strategy(name):
    if name == "workers":
        return tf.distribute.MultiWorkerMirroredStrategy()
    if name == "mirrored":
        return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    return tf.distribute.get_strategy()


def main(*names):
    if "mirrored" in names:
        device = tf.config.list_physical_devices("CPU")[0]
        halves = [tf.config.LogicalDeviceConfiguration() for _ in range(2)]
        tf.config.set_logical_device_configuration(device, halves)
    for name in names:
        print(json.dumps(train(make_strategy(name))))


def train(strategy):
    """Returns the losses of each step."""
    import bertbook as bb  # after a strategy was made: it computes something
    from bertbook.runtime import keras
    from bertbook.training.optimizers import WarmupLinearDecay, make_optimizer

    keras.utils.set_random_seed(0)
    config = bb.BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=LENGTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    with strategy.scope():
        model = bb.BertForSequenceClassification(config, num_labels=2)
        model.compile(
            make_optimizer(WarmupLinearDecay(1e-2, 2, STEPS)),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            # What a strategy has not to do with is spared the seconds of XLA.
            jit_compile=strategy.num_replicas_in_sync > 1 and "auto",
        )
    random = np.random.default_rng(0)
    x = {
        "input_ids": random.integers(5, 50, (ROWS, LENGTH)).astype("int32"),
        "token_type_ids": np.zeros((ROWS, LENGTH), "int32"),
        "attention_mask": np.ones((ROWS, LENGTH), "int32"),
    }
    y = random.integers(0, 2, ROWS).astype("int32")
    data = tf.data.Dataset.from_tensors((x, y))
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.DATA
    )
    data = data.unbatch().batch(ROWS).with_options(options)
    return model.fit(data, epochs=STEPS, verbose=0).history["loss"]


if __name__ == "__main__":
    main(*sys.argv[1:])
