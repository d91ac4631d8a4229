"""The encoder, and on top of it the two heads of pre-training."""

import keras
from keras import layers, ops

from .block import Block
from .embeddings import Embeddings, normal


class Bert(keras.Model):
    """Turns a batch into one vector a token, by L blocks on the embeddings.

    V pieces, width D, N heads, F inside a feed-forward network, P positions.
    Source: Devlin et al. (2019), section 3.
    """

    def __init__(self, V, D=256, L=4, N=4, F=1024, P=512, dropout=0.1):
        super().__init__()
        self.sizes = {"V": V, "D": D, "L": L, "N": N, "F": F, "P": P}
        self.embeddings = Embeddings(V, D, P, dropout)
        self.blocks = [Block(D, N, F, dropout) for _ in range(L)]
        self.pooler = layers.Dense(D, "tanh", kernel_initializer=normal())
        self.pooler.build((None, D))

    def states(self, batch):
        """Returns the vectors after the embeddings and after each block.

        Args: `batch`, a dict of `input_ids`, `token_type_ids` and
        `attention_mask`, `(B, S)`. Returns a list of L + 1 times `(B, S, D)`.
        """
        x = self.embeddings(batch["input_ids"], batch["token_type_ids"])
        states = [x]
        for block in self.blocks:
            x = block(x, batch["attention_mask"])
            states.append(x)
        return states

    def call(self, batch):
        """Returns the last vectors, `(B, S, D)`."""
        return self.states(batch)[-1]

    def pooled(self, batch, training=None):
        """Returns `(B, D)`: the pooler applied to the last vector of [CLS]."""
        return self.pooler(self(batch, training=training)[:, 0])


class BertForPreTraining(keras.Model):
    """Guesses hidden tokens, and whether the second text follows the first.

    Source: Devlin et al. (2019), section 3.1.
    """

    architecture = "BertForPreTraining"

    def __init__(self, bert):
        super().__init__()
        self.bert = bert
        V, D = bert.sizes["V"], bert.sizes["D"]
        self.dense = layers.Dense(D, kernel_initializer=normal())
        self.norm = layers.LayerNormalization(epsilon=1e-12)
        self.bias = self.add_weight((V,), "zeros", name="bias")
        self.next_sentence = layers.Dense(2, kernel_initializer=normal())

    def call(self, batch, training=None):
        """Returns `mlm_logits`, `(B, S, V)`, and `nsp_logits`, `(B, 2)`.

        The second are scores of "it follows" and "it does not". `fit` sets
        `training` where a model takes it; hand it on to the encoder.
        """
        x = self.bert(batch, training=training)  # (B, S, D)
        guess = self.norm(ops.gelu(self.dense(x), approximate=False))
        table = self.bert.embeddings.token.embeddings  # (V, D), shared
        follows = self.next_sentence(self.bert.pooler(x[:, 0]))
        return {
            "mlm_logits": ops.matmul(guess, ops.transpose(table)) + self.bias,
            "nsp_logits": follows,
        }

    def heads(self):
        """Returns the layers above the encoder by their published names."""
        return {
            "cls.predictions.transform.dense": self.dense,
            "cls.predictions.transform.LayerNorm": self.norm,
            "cls.seq_relationship": self.next_sentence,
        }
