"""How fast is one step of pre-training beside KerasHub's and PyTorch's?

    python -m benchmarks.pretraining [mini] [base]        # TensorFlow
    KERAS_BACKEND=jax python -m benchmarks.pretraining    # JAX, KerasHub alone

Masked words alone, because KerasHub has no next-sentence head: 128 tokens, 20
of them hidden, no dropout, the vocabulary of 8,192, AdamW. Ours computes in
what `dtype="auto"` chooses. The peers: KerasHub with Keras' own AdamW, in
float32 with XLA and in bfloat16 without (with XLA it is slowest); Hugging
Face's layers in PyTorch, bfloat16 by autocast, the head at the hidden tokens,
in a process of its own.
All start from the same weights and give the same loss.
"""

import sys
import tempfile

import numpy as np

import bertbook as bb
from benchmarks import turns
from benchmarks.torch_peer import DECAY, EPSILON, RATE, TorchPeer
from bertbook.batches.batching import to_fit
from bertbook.runtime import choose_compilation, choose_dtype, compiles_whole
from bertbook.training.losses import classification_loss
from bertbook.training.optimizers import make_optimizer

LENGTH, SLOTS, VOCABULARY = 128, 20, 8_192
ROWS = {"mini": 64, "base": 8}
PAIRS = {"mini": 15, "base": 9}
STEPS = 3  # a turn; the first one after another program finds cold caches


def main():
    """Times the sizes named as arguments, or all, and keeps the results."""
    bb.setup()
    import keras

    backend = keras.backend.backend()
    results = {}
    for size in sys.argv[1:] or ROWS:
        results |= compare(size)
    for name, result in results.items():
        turns.report(name, result)
        tokens = ROWS[name.split()[0]] * LENGTH * STEPS
        print(
            f"  tokens per second: ours {tokens / result['seconds_ours']:,.0f}"
            f", the peer {tokens / result['seconds_theirs']:,.0f}"
        )
    packages = ["bertbook", "keras", "keras-hub", backend]
    if backend == "tensorflow":
        packages += ["torch", "transformers"]
    turns.save(f"pretraining_{backend}", results, packages)


def compare(size):
    """Times some steps of every model of a size, in turns."""
    import keras

    rows = ROWS[size]
    batch = draw_batch(rows)
    backbone, head = draw_weights(size)
    dtype = choose_dtype().path
    functions, losses = {}, {}
    ours = build_ours(backbone, head, dtype)
    functions["ours"] = step_of(ours, batch)
    losses[f"ours, {dtype}"] = loss_of(ours, batch)
    losses["ours, float32"] = loss_of(
        build_ours(backbone, head, "float32"), batch
    )
    kinds = {"KerasHub, float32, XLA": ("float32", True)}
    if keras.backend.backend() == "tensorflow":
        kinds["KerasHub, bfloat16"] = ("mixed_bfloat16", False)
    for name, (numbers, whole) in kinds.items():
        peer = build_hub(size, backbone, head, numbers, whole)
        functions[name] = step_of(peer, batch, rename)
        losses[name] = loss_of(peer, batch, rename)
    if keras.backend.backend() == "tensorflow":
        peer = start_torch(ours, batch)
        losses["PyTorch, bfloat16"] = peer.loss
        functions["PyTorch, bfloat16"] = peer.step
    check_losses(losses)
    functions = {name: repeated(f) for name, f in functions.items()}
    return turns.in_turns(
        functions.pop("ours"),
        {f"{size} {rows} x {LENGTH}, {n}": f for n, f in functions.items()},
        PAIRS[size],
    )


def repeated(step):
    """Returns a function that takes the steps of one turn."""

    def turn():
        for _ in range(STEPS):
            step()

    return turn


def check_losses(losses):
    """Raises where the losses of the same weights differ."""
    expected = losses["ours, float32"]
    for name, loss in losses.items():
        print(f"  loss {loss:.6f}  {name}")
        bound = 1e-5 if "float32" in name else 2e-2
        if abs(loss - expected) > bound:
            raise ValueError(f"{name}: {loss} is not {expected}.")


def step_of(model, batch, change=dict):
    """Returns a function that takes one step of a Keras model."""
    x, y, weights = to_fit(batch)
    x = change(x)
    return lambda: model.train_on_batch(x, y, weights)


def loss_of(model, batch, change=dict):
    """Returns the loss of a Keras model before it takes a step."""
    x, y, weights = to_fit(batch)
    return float(model.test_on_batch(change(x), y, weights))


def draw_weights(size):
    """Returns a KerasHub backbone and a masked-word head, drawn in float32."""
    import keras_hub

    config = bb.BertConfig.named(size)
    backbone = keras_hub.models.BertBackbone(
        VOCABULARY,
        config.num_hidden_layers,
        config.num_attention_heads,
        config.hidden_size,
        config.intermediate_size,
        dropout=0.0,
        max_sequence_length=512,
    )
    return backbone, hub_head(backbone)


def hub_head(backbone):
    """Returns KerasHub's masked-word head, built, as our encoder needs it."""
    import keras
    import keras_hub

    head = keras_hub.layers.MaskedLMHead(
        token_embedding=backbone.token_embedding,
        intermediate_activation=lambda x: keras.ops.gelu(x, True),
        layer_norm_epsilon=1e-12,
        dtype=backbone.dtype_policy,
    )
    places = keras.Input((None,), dtype="int32", name="mask_positions")
    head(backbone.output["sequence_output"], mask_positions=places)
    return head


def build_hub(size, backbone, head, dtype, whole):
    """Returns KerasHub's model with copies of the weights, compiled."""
    import keras
    import keras_hub

    copy = keras_hub.models.BertBackbone.from_config(
        {**backbone.get_config(), "dtype": dtype, "name": "peer"}
    )
    copy.set_weights(backbone.get_weights())
    new_head = hub_head(copy)
    places = keras.Input((None,), dtype="int32", name="mask_positions")
    logits = new_head(copy.output["sequence_output"], mask_positions=places)
    model = keras.Model({**copy.input, "mask_positions": places}, logits)
    new_head.set_weights(head.get_weights())
    optimizer = keras.optimizers.AdamW(
        RATE, weight_decay=DECAY, epsilon=EPSILON, global_clipnorm=1.0
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, jit_compile=whole)
    return model


def build_ours(backbone, head, dtype):
    """Returns our model with the peer's weights, compiled."""
    ours = bb.BertForMaskedLM.from_pretrained(backbone, dtype=dtype)
    for weight in head.weights:
        name = weight.path.rpartition("masked_lm_head")[2].partition("/")[2]
        if name in HEAD:
            part, attribute = HEAD[name]
            owner = getattr(ours.masked_lm, part) if part else ours.masked_lm
            getattr(owner, attribute).assign(weight)
    islands = choose_compilation(ours.compute_dtype).path == "islands"
    ours.compile(
        make_optimizer(RATE, DECAY, epsilon=EPSILON, compiled=islands),
        classification_loss(),
        jit_compile=compiles_whole(ours.compute_dtype),
    )
    return ours


HEAD = {
    "intermediate_dense/kernel": ("dense", "kernel"),
    "intermediate_dense/bias": ("dense", "bias"),
    "intermediate_layer_norm/gamma": ("norm", "gamma"),
    "intermediate_layer_norm/beta": ("norm", "beta"),
    "output_bias": (None, "bias"),
}


def start_torch(ours, batch):
    """Returns Hugging Face's layers with our weights, in another process."""
    folder = tempfile.mkdtemp()
    ours.save_pretrained(folder)
    return TorchPeer(folder, batch)


def draw_batch(rows):
    """Draws rows of ids, 90 to 128 of them real, 20 hidden in each."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(90, LENGTH + 1, (rows, 1))
    mask = (np.arange(LENGTH) < lengths).astype("int32")
    ids = rng.integers(5, VOCABULARY, (rows, LENGTH)).astype("int32") * mask
    places = [rng.choice(90, SLOTS, replace=False) for _ in range(rows)]
    return {
        "input_ids": ids,
        "token_type_ids": np.zeros_like(ids),
        "attention_mask": mask,
        "masked_lm_positions": np.array(places, "int32"),
        "masked_lm_ids": rng.integers(5, VOCABULARY, (rows, SLOTS)),
        "masked_lm_weights": np.ones((rows, SLOTS), "float32"),
    }


def rename(batch):
    """Returns a batch under the peer's names."""
    names = ("token_ids", "segment_ids", "padding_mask", "mask_positions")
    return dict(zip(names, batch.values(), strict=True))


if __name__ == "__main__":
    main()
