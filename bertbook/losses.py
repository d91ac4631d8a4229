"""What training makes small.

Differences: none. Google's code adds 1e-5 to the number of slots that it
divides by.
"""

from bertbook.runtime import keras


def classification_loss(reduction="mean_with_sample_weight"):
    """Returns the cross-entropy of logits and integer labels, in nats.

    With the weights of `batching.to_fit` a slot that is not used, weight 0,
    counts neither above nor below the line.

    Source: Devlin et al. (2019), appendix A.2.

    Args:
        reduction: "mean_with_sample_weight" divides by the sum of the
            weights; "sum" leaves it to weights that already sum to 1.
    """
    return keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction=reduction
    )


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
