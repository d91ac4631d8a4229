"""One block: attention, then feed-forward; each is added and normalized."""

from keras import layers, ops

from .attention import SelfAttention
from .embeddings import normal


class FeedForward(layers.Layer):
    """Works on each token by itself: widen to F, GELU, narrow to D.

    Source: Vaswani et al. (2017), equation 2; GELU as in Devlin et al. (2019).
    """

    def __init__(self, D, F):
        super().__init__()
        self.expand = layers.Dense(F, kernel_initializer=normal())
        self.contract = layers.Dense(D, kernel_initializer=normal())

    def call(self, x):
        """Returns new vectors, `(B, S, D)`, for `x`, `(B, S, D)`."""
        wide = ops.gelu(self.expand(x), approximate=False)  # (B, S, F)
        return self.contract(wide)


class Block(layers.Layer):
    """Attention and feed-forward, each added to its input and normalized.

    Width D, N heads, F inside. Source: Vaswani et al. (2017), figure 1, left.
    """

    def __init__(self, D, N, F, dropout=0.1):
        super().__init__()
        self.attention = SelfAttention(D, N, dropout)
        self.attention_norm = layers.LayerNormalization(epsilon=1e-12)
        self.feed_forward = FeedForward(D, F)
        self.output_norm = layers.LayerNormalization(epsilon=1e-12)
        self.dropout = layers.Dropout(dropout)

    def call(self, x, mask):
        """Returns new vectors, `(B, S, D)`, for `x` and a mask, `(B, S)`."""
        gathered = self.dropout(self.attention(x, mask))
        x = self.attention_norm(x + gathered)
        worked = self.dropout(self.feed_forward(x))
        return self.output_norm(x + worked)
