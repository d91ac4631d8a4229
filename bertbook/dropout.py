"""Dropout that spends few random numbers.

Differences: the rate is rounded to a multiple of one in 65,536.
"""

from bertbook.runtime import keras, ops

LEVELS = 2**16  # of half a random number


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
        kept = ops.concatenate(halves, axis=-1)[..., :size] >= self.dropped
        scale = LEVELS / (LEVELS - self.dropped)
        return ops.where(kept, values * scale, ops.zeros_like(values))
