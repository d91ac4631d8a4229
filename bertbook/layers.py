"""The dense layer and the normalization that every part of BERT is made of."""

from bertbook.islands import add_bias_and_activate, normalize, on_island
from bertbook.runtime import keras, ops


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
        super().__init__(units, activation, kernel_initializer=kernel, **kwargs)
        self.is_linear = activation is None

    def call(self, inputs, training=None):
        """Returns `(..., units)` for `(..., D)`."""
        is_product = self.is_linear or self.bias is None
        if is_product or not on_island(inputs):
            return super().call(inputs, training=training)
        product = ops.matmul(inputs, self.kernel)
        return add_bias_and_activate(
            product, self.bias, activation=self.activation
        )

    def quantize(self, mode=None, type_check=False, **kwargs):
        """Makes the matrix one of integers, as `keras.layers.Dense` does."""
        return super().quantize(mode, type_check=type_check, **kwargs)


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
