"""Losses of classification, pre-training and translation.

Differences: none. Google's code adds 1e-5 to the number of slots that it
divides by.
"""

import re

from bertbook.islands import cross_entropy, on_island
from bertbook.runtime import keras, ops


def classification_loss(reduction="mean_with_sample_weight"):
    """Returns the cross-entropy of logits and integer labels, in nats.

    With the weights of `batching.to_fit` a slot that is not used, weight 0,
    counts neither in the numerator nor in the denominator.

    Source: Devlin et al. (2019), appendix A.2.

    Args:
        reduction: "mean_with_sample_weight" divides by the sum of the
            weights; "sum" leaves it to weights that already sum to 1.
    """
    return CrossEntropy(from_logits=True, reduction=reduction)


@keras.saving.register_keras_serializable("bertbook")
class CrossEntropy(keras.losses.SparseCategoricalCrossentropy):
    """Keras' cross-entropy of integer labels, on an island where that pays.

    Args:
        **kwargs: Keywords of `keras.losses.SparseCategoricalCrossentropy`.
    """

    def __call__(self, labels, logits, sample_weight=None):
        """Returns the loss for labels, `(...)`, and logits, `(..., K)`."""
        if not on_island(logits):
            return super().__call__(labels, logits, sample_weight)
        # Keras would first make a float32 copy of all logits.
        nats = cross_entropy(logits, ops.cast(labels, "int32"))
        return _Reduced(self.reduction)(labels, nats, sample_weight)


class _Reduced(keras.losses.Loss):
    """Reduces losses that are computed already."""

    def __init__(self, reduction):
        super().__init__(reduction=reduction)

    def call(self, labels, losses):
        """Returns `losses`."""
        return losses


@keras.saving.register_keras_serializable("bertbook")
class SmoothedLoss(keras.losses.Loss):
    """The cross-entropy with labels that leave a share to every token.

    Source: Szegedy et al. (2016), section 7; Vaswani et al. (2017), section
    5.4.

    Args:
        smoothing: The share, spread evenly over all V; 0 gives
            `classification_loss`.
        reduction: As in `classification_loss`.

    Raises:
        ValueError: `smoothing` is not in [0, 1).
    """

    def __init__(self, smoothing=0.1, reduction="mean_with_sample_weight"):
        if not 0.0 <= smoothing < 1.0:
            raise ValueError(
                f"`smoothing` must be in [0, 1). Received: {smoothing!r}."
            )
        super().__init__(reduction=reduction)
        self.smoothing = smoothing

    def call(self, labels, logits):
        """Returns nats, `(B, T)`, for `(B, T)` and logits, `(B, T, V)`."""
        labels = ops.cast(labels, "int32")
        right = ops.sparse_categorical_crossentropy(
            labels, logits, from_logits=True
        )
        every = ops.logsumexp(logits, axis=-1) - ops.mean(logits, axis=-1)
        return (1 - self.smoothing) * right + self.smoothing * every

    def get_config(self):
        """Returns the arguments of `__init__`."""
        return {"smoothing": self.smoothing, "reduction": self.reduction}


def several_loss(reduction="mean_with_sample_weight"):
    """Returns the binary cross-entropy of each of several labels, their mean.

    Args:
        reduction: As in `classification_loss`.
    """
    return keras.losses.BinaryCrossentropy(
        from_logits=True, reduction=reduction
    )


def number_loss(reduction="mean_with_sample_weight"):
    """Returns the squared error of a number.

    Args:
        reduction: As in `classification_loss`.
    """
    return keras.losses.MeanSquaredError(reduction=reduction)


def pretraining_losses(reduction="mean_with_sample_weight"):
    """Returns both losses of `BertForPreTraining`; Keras adds them up.

    Source: Devlin et al. (2019), appendix A.2: "the sum of the mean masked LM
    likelihood and the mean next sentence prediction likelihood".
    """
    return {
        "mlm_logits": classification_loss(reduction),
        "nsp_logits": classification_loss(reduction),
    }


def pretraining_metrics():
    """Returns the accuracies of `BertForPreTraining`, weighted as the loss."""
    return {
        name: [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
        for name in ("mlm_logits", "nsp_logits")
    }


# By the names that Keras takes, the classes of losses of probabilities.
OF_PROBABILITIES = {
    name: kind
    for kind in (
        "BinaryCrossentropy",
        "BinaryFocalCrossentropy",
        "CategoricalCrossentropy",
        "CategoricalFocalCrossentropy",
        "SparseCategoricalCrossentropy",
    )
    for name in (kind, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).lower())
}


def loss_of_probabilities(loss):
    """Returns the class of a loss that takes probabilities; None for others.

    Args:
        loss: What `keras.Model.compile` takes: a name, a function or an
            object.

    >>> loss_of_probabilities("binary_crossentropy")
    'BinaryCrossentropy'
    """
    if isinstance(loss, str):
        return OF_PROBABILITIES.get(loss)
    if isinstance(loss, keras.losses.Loss):
        if getattr(loss, "from_logits", True):
            return None
        return OF_PROBABILITIES.get(type(loss).__name__)
    return OF_PROBABILITIES.get(getattr(loss, "__name__", ""))
