"""Layers that all models are made of: `Dense`, `LayerNorm`, `Dropout`.

Differences: the rate of dropout is rounded to a multiple of one in 65,536.
"""

import functools
import math

from bertbook.islands import (
    add_bias_and_activate,
    is_exporting,
    normalize,
    on_island,
)
from bertbook.runtime import keras, ops

LEVELS = 2**16  # values of the 16 bits that decide about one number


class Dropout(keras.layers.Layer):
    """Sets a share of the values to 0 in training, and enlarges the others.

    Two values share one random number of 32 bits, 16 for each. Drawing them
    is a good part of the cost of dropout.

    Source: Srivastava et al. (2014).

    Args:
        rate: The share, in [0, 1).
    """

    def __init__(self, rate, **kwargs):
        super().__init__(**kwargs)
        self.rate = rate
        self.dropped = min(round(rate * LEVELS), LEVELS - 1)
        if self.dropped:
            self.seed_generator = keras.random.SeedGenerator()
        self.built = True

    def call(self, values, training=None):
        """Returns `values` with some dropped; all, where not `training`.

        Args:
            values: Float tensor of any shape with an axis or more.
            training: Whether to drop.
        """
        if not training or not self.dropped:
            return values
        *others, size = ops.shape(values)
        words = keras.random.randint(
            (*others, (size + 1) // 2), -(2**31), 2**31 - 1,
            seed=self.seed_generator,
        )  # fmt: skip
        halves = [words, ops.right_shift(words, 16)]
        halves = [ops.bitwise_and(half, LEVELS - 1) for half in halves]
        is_kept = ops.concatenate(halves, axis=-1)[..., :size] >= self.dropped
        scale = LEVELS / (LEVELS - self.dropped)
        return ops.where(is_kept, values * scale, ops.zeros_like(values))


class Dense(keras.layers.Dense):
    """A dense layer whose matrix is drawn as BERT's are.

    Source: `create_initializer` of Google's code.

    Args:
        units: Width of the result.
        initializer_range: Standard deviation of the initial matrix.
        activation: A function of a tensor, or a name that Keras knows.
        **kwargs: Keywords of `keras.layers.Dense`.
    """

    def __init__(
        self, units, initializer_range=0.02, activation=None, **kwargs
    ):
        kernel = keras.initializers.TruncatedNormal(stddev=initializer_range)
        super().__init__(units, None, kernel_initializer=kernel, **kwargs)
        self.function = keras.activations.get(activation)

    def call(self, inputs, training=None):
        """Returns `(..., units)` for `(..., D)`."""
        is_linear = self.function is keras.activations.linear
        if not is_linear and self.bias is not None and on_island(inputs):
            product = ops.matmul(inputs, self.kernel)
            return add_bias_and_activate(
                product, self.bias, activation=self.function
            )
        if keras.backend.backend() != "tensorflow" or training:
            return self.function(super().call(inputs, training=training))
        # TensorFlow computes product and bias in one, where the product is one
        # of two matrices. With a GELU in it that would be less exact.
        others, width = ops.shape(inputs)[:-1], inputs.shape[-1]
        outputs = super().call(ops.reshape(inputs, (-1, width)))
        return self.function(ops.reshape(outputs, (*others, self.units)))

    def quantized_call(self, *args, **kwargs):
        """Returns what `call` does, by a matrix of integers."""
        return self.function(super().quantized_call(*args, **kwargs))

    def resize(self, units):
        """Draws the weights anew for another width of the result."""
        width = self.kernel.shape[0]
        for variable in (self._kernel, self.bias):
            self._untrack_variable(variable)
        self.units, self.built = units, False
        self._tracker.unlock()
        self.build((None, width))

    def quantize(self, mode=None, type_check=True, config=None):
        """Makes the matrix one of integers, as `keras.layers.Dense` does.

        Keras refuses subclasses where `type_check` is True, as they may
        compute something else; this one computes the same.
        """
        return super().quantize(mode, type_check=False, config=config)

    def load_own_variables(self, store):
        """Reads the matrix from a file of Keras, with what adapters added.

        Keras then sets both adapters to 0, from where neither would learn.
        """
        super().load_own_variables(store)
        if self.lora_enabled:
            draw = keras.initializers.HeUniform()
            self.lora_kernel_a.assign(draw(self.lora_kernel_a.shape))


class LayerNorm(keras.layers.LayerNormalization):
    """Brings every vector to mean 0 and variance 1, then scales and shifts it.

    Source: Ba et al. (2016), equation 4.

    Args:
        epsilon: What is added to the variance.
        dtype: The dtype policy.
        name: The layer's name.
    """

    def __init__(self, epsilon=1e-12, dtype=None, name=None):
        super().__init__(epsilon=epsilon, dtype=dtype, name=name)

    def call(self, inputs):
        """Returns vectors like `inputs`, `(..., D)`."""
        if not on_island(inputs):
            return super().call(inputs)
        return normalize(inputs, self.gamma, self.beta, epsilon=self.epsilon)


def make_norm(config, dtype, name):
    """Returns a layer normalization with the epsilon of a config."""
    return keras.layers.LayerNormalization(
        epsilon=config.layer_norm_eps, dtype=dtype, name=name
    )


class FeedForward(keras.layers.Layer):
    """Works on every token by itself: widen to F, activate, narrow to D.

    Source: Vaswani et al. (2017), equation 2; GELU as in Devlin et al. (2019).

    Args:
        config: A `BertConfig`.
    """

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.expand = Dense(
            config.intermediate_size,
            config.initializer_range,
            activation(config.hidden_act),
            dtype=self.dtype_policy,
            name="expand",
        )
        self.contract = Dense(
            config.hidden_size,
            config.initializer_range,
            dtype=self.dtype_policy,
            name="contract",
        )

    def build(self, hidden_shape):
        """Creates both matrices."""
        self.expand.build(hidden_shape)
        self.contract.build((*hidden_shape[:-1], self.expand.units))

    def call(self, hidden):
        """Returns new vectors, `(B, S, D)`, from `hidden`, `(B, S, D)`."""
        widened = self.expand(hidden)  # (B, S, F), activated
        return self.contract(widened)  # (B, S, D)


@functools.cache
def activation(hidden_act):
    """Returns the function that `hidden_act` of a config names.

    Source: Hendrycks and Gimpel (2016) for GELU and its tanh approximation.

    Args:
        hidden_act: "gelu" (x times the normal distribution function of x),
            "gelu_tanh" or "relu".
    """
    functions = {
        "gelu": lambda x: exact_gelu(x),  # a test may put another in place
        "gelu_tanh": lambda x: ops.gelu(x, approximate=True),
        "relu": ops.relu,
    }
    return functions[hidden_act]


def gather_tokens(hidden, positions):
    """Takes the vectors of some tokens of each row.

    Args:
        hidden: Float tensor of shape `(B, S, D)`.
        positions: Integer tensor of shape `(B, M)`, each below S.

    Returns:
        Float tensor of shape `(B, M, D)`.
    """
    length, width = ops.shape(hidden)[1], hidden.shape[2]
    first = ops.arange(ops.shape(hidden)[0], dtype="int32") * length  # (B,)
    places = ops.cast(positions, "int32") + first[:, None]  # (B, M)
    return ops.take(ops.reshape(hidden, (-1, width)), places, axis=0)


def exact_gelu(x):
    """Returns x times the normal distribution function of x.

    By `erfc`, as Keras has it, which stays exact far below 0; converters to
    other formats know `erf` alone. On TensorFlow the sign goes with the
    constant: the same numbers, and one pass over them less.

    Source: Hendrycks and Gimpel (2016).
    """
    if is_exporting():
        return 0.5 * x * (1.0 + ops.erf(x / math.sqrt(2.0)))
    if keras.backend.backend() != "tensorflow":
        return ops.gelu(x, approximate=False)
    import tensorflow as tf

    return 0.5 * x * tf.math.erfc(x * -math.sqrt(0.5))
