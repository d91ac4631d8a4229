"""ELMo: LSTM language models in one direction and in both.

Differences: the published ELMo makes its token vectors from characters, adds
the input of its second layer to the output, and is 4,096 wide inside; ULMFiT
drops weights in five places. Here the token table is also the last matrix, as
in `CausalLM`, and the only dropout is on what goes into a layer.
"""

from dataclasses import dataclass

from bertbook.model.layers import Dropout
from bertbook.runtime import keras, ops
from bertbook.weights.matrices import float_matrix


@dataclass(frozen=True, kw_only=True)
class LSTMConfig:
    """The sizes of a stack of LSTM layers.

    Raises:
        ValueError: A size is not a positive integer, the rate is outside
            [0, 1), or the last layer is not as wide as a token.
    """

    vocab_size: int  # V
    hidden_size: int = 128  # D, width of a token and of the last layer
    widths: tuple[int, ...] = (256, 128)  # width of each layer's state
    hidden_dropout_prob: float = 0.0
    initializer_range: float = 0.05

    def __post_init__(self) -> None:
        sizes = self.vocab_size, self.hidden_size, *self.widths
        if not all(isinstance(size, int) and size >= 1 for size in sizes):
            raise ValueError(
                "`vocab_size`, `hidden_size` and `widths` must be integers "
                f">= 1. Received: {sizes}."
            )
        if not self.widths or self.widths[-1] != self.hidden_size:
            raise ValueError(
                "`widths` must end in `hidden_size`: the token table is the "
                f"last matrix. Received: {self.widths} and {self.hidden_size}."
            )
        if not 0.0 <= self.hidden_dropout_prob < 1.0:
            raise ValueError(
                "`hidden_dropout_prob` must be in [0, 1). Received: "
                f"{self.hidden_dropout_prob}."
            )


class LSTMStack(keras.layers.Layer):
    """Reads tokens one after another, in one direction.

    Source: Hochreiter and Schmidhuber (1997), with the forget gate of Gers,
    Schmidhuber and Cummins (2000), as everywhere today.

    Args:
        config: An `LSTMConfig`.
        backwards: Whether to begin with the last token.
    """

    def __init__(self, config, backwards=False, **kwargs):
        super().__init__(**kwargs)
        self.backwards = backwards
        self.dropout = Dropout(
            config.hidden_dropout_prob, dtype=self.dtype_policy
        )
        self.parts = [
            keras.layers.LSTM(
                width,
                return_sequences=True,
                go_backwards=backwards,
                dtype=self.dtype_policy,
                name=f"lstm_{i}",
            )
            for i, width in enumerate(config.widths)
        ]

    def build(self, vectors_shape):
        """Creates the weights for vectors of width D."""
        *others, width = vectors_shape
        for part in self.parts:
            part.build((*others, width))
            width = part.units

    def call(self, vectors, real=None, training=None):
        """Returns the states of every layer, L times `(B, S, width)`.

        Args:
            vectors: Float tensor of shape `(B, S, D)`.
            real: Optional boolean tensor of shape `(B, S)`, False where a
                token is padding; it changes no state, and gets zeros.
            training: Whether to drop values.
        """
        states = []
        for part in self.parts:
            vectors = self.dropout(vectors, training=training)
            vectors = part(vectors, mask=real)
            if self.backwards:  # it comes out last token first
                vectors = ops.flip(vectors, axis=1)
            if real is not None:
                vectors = ops.where(real[:, :, None], vectors, 0.0)
            states.append(vectors)
        return states


class LSTMLanguageModel(keras.Model):
    """Scores what comes next, after every token of a text.

    Source: Howard and Ruder (2018), section 3.1, where the layers are three.

    Args:
        config: An `LSTMConfig`.

    Raises:
        ValueError: `config` is something else.
    """

    def __init__(self, config, **kwargs):
        _check_config(config)
        super().__init__(**kwargs)
        self.config = config
        self.token = _token_table(config, self.dtype_policy)
        self.stack = LSTMStack(config, dtype=self.dtype_policy, name="forward")
        self.build()

    def build(self, input_shape=None):
        """Creates every weight; called once, by `__init__`."""
        self.token.build((None, None))
        self.stack.build((None, None, self.config.hidden_size))

    def hidden_states(self, batch, training=None):
        """Returns the token vectors and the states of every layer.

        Args:
            batch: A dict of `input_ids` and perhaps `attention_mask`, integer
                tensors of shape `(B, S)`.
            training: Whether to drop values.

        Returns:
            A list of L + 1 float tensors of shape `(B, S, width)`.
        """
        vectors = self.token(batch["input_ids"])
        states = self.stack(vectors, _real_tokens(batch), training=training)
        return [vectors, *states]

    def call(self, batch, training=None):
        """Returns logits: `(B, S, V)`, at t for the token at t + 1."""
        last = self.hidden_states(batch, training)[-1]
        return _score(last, self.token)


class BidirectionalLM(keras.Model):
    """Two LSTM language models with one token table: the body of ELMo.

    Source: Peters et al. (2018), section 3.1.

    Args:
        config: An `LSTMConfig` whose layers are all `hidden_size` wide.

    Raises:
        ValueError: `config` is something else.
    """

    def __init__(self, config, **kwargs):
        _check_config(config)
        if set(config.widths) != {config.hidden_size}:
            raise ValueError(
                "`widths` must all be `hidden_size`: ELMo adds up its layers. "
                f"Received: {config.widths} and {config.hidden_size}."
            )
        super().__init__(**kwargs)
        self.config = config
        policy = self.dtype_policy
        self.token = _token_table(config, policy)
        self.forward = LSTMStack(config, dtype=policy, name="forward")
        self.backward = LSTMStack(
            config, backwards=True, dtype=policy, name="backward"
        )
        self.build()

    def build(self, input_shape=None):
        """Creates every weight; called once, by `__init__`."""
        self.token.build((None, None))
        for stack in (self.forward, self.backward):
            stack.build((None, None, self.config.hidden_size))

    def directions(self, batch, training=None):
        """Returns token vectors and states, L + 1 tensors for each direction.

        Neither direction ever reads a state of the other.
        """
        vectors = self.token(batch["input_ids"])
        real = _real_tokens(batch)
        return tuple(
            [vectors, *stack(vectors, real, training=training)]
            for stack in (self.forward, self.backward)
        )

    def hidden_states(self, batch, training=None):
        """Returns both directions side by side: L + 1 times `(B, S, 2 D)`."""
        pairs = zip(*self.directions(batch, training), strict=True)
        return [ops.concatenate(pair, axis=-1) for pair in pairs]

    def call(self, batch, training=None):
        """Returns logits of both directions.

        Args:
            batch: As in `LSTMLanguageModel`.
            training: Whether to drop values.

        Returns:
            A dict of `next`, at t for the token at t + 1, and `previous`, at
            t for the token at t - 1, each `(B, S, V)`.
        """
        forward, backward = self.directions(batch, training)
        return {
            "next": _score(forward[-1], self.token),
            "previous": _score(backward[-1], self.token),
        }


class LayerMix(keras.layers.Layer):
    """Adds up the layers of a model, with weights that a task learns.

    Source: Peters et al. (2018), equation 1.

    Args:
        num_layers: How many layers there are, the token vectors included.

    Raises:
        ValueError: `num_layers` is below 1.
    """

    def __init__(self, num_layers, **kwargs):
        if not num_layers >= 1:
            raise ValueError(
                f"`num_layers` must be >= 1. Received: {num_layers}."
            )
        super().__init__(**kwargs)
        self.scores = self.add_weight(
            shape=(num_layers,), initializer="zeros", name="scores"
        )
        self.gamma = self.add_weight(shape=(), initializer="ones", name="gamma")
        self.built = True

    def call(self, layers):
        """Returns gamma times the weighted sum, `(B, S, D)`.

        Args:
            layers: A list of float tensors of shape `(B, S, D)`.

        Raises:
            ValueError: There are not `num_layers` of them, or their widths
                differ.
        """
        widths = {layer.shape[-1] for layer in layers}
        if len(layers) != self.scores.shape[0] or len(widths) != 1:
            raise ValueError(
                f"`layers` must be {self.scores.shape[0]} tensors of one "
                f"width. Received: {[tuple(x.shape) for x in layers]}."
            )
        shares = ops.softmax(self.scores)  # s_j, they sum to 1
        return self.gamma * sum(
            shares[j] * layer for j, layer in enumerate(layers)
        )


def _token_table(config, policy):
    """Returns the layer that gives each id its vector of width D."""
    return keras.layers.Embedding(
        config.vocab_size,
        config.hidden_size,
        embeddings_initializer=keras.initializers.TruncatedNormal(
            stddev=config.initializer_range
        ),
        dtype=policy,
        name="token",
    )


def _score(hidden, token):
    """Returns logits, `(B, S, V)`: products with the token table."""
    table = ops.cast(float_matrix(token), hidden.dtype)  # (V, D)
    return ops.matmul(hidden, ops.transpose(table))


def _real_tokens(batch):
    """Returns which tokens are no padding, `(B, S)`, or None where all are."""
    if batch.get("attention_mask") is None:
        return None
    return ops.cast(batch["attention_mask"], "bool")


def _check_config(config):
    """Refuses what is no `LSTMConfig`."""
    if not isinstance(config, LSTMConfig):
        raise ValueError(
            f"`config` must be an `LSTMConfig`. Received: {config!r}."
        )
