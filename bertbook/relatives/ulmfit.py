"""ULMFiT: a learning rate for each layer, and gradual unfreezing.

Differences: none in the rates, the schedule, Adam's two betas and the order of
unfreezing; the model is that of `elmo`, and the head that of
`ancestors`. (Averaged SGD belongs to AWD-LSTM, whose layers ULMFiT
took.)
"""

import numpy as np

from bertbook.runtime import keras, may_compile, ops
from bertbook.training.optimizers import AdamW, check_peak

FACTOR = 2.6  # by it the rate falls from each layer to the one below
FROZEN = -1.0


@keras.saving.register_keras_serializable("bertbook")
class SlantedTriangular(keras.optimizers.schedules.LearningRateSchedule):
    """Raises the rate in a short line, then lowers it in a long one.

    Source: Howard and Ruder (2018), equation 3.

    Args:
        peak: The highest rate.
        total_steps: All steps.
        cut: Share of the steps on the way up.
        ratio: How much smaller the lowest rate is.

    Raises:
        ValueError: A number is out of range.
    """

    def __init__(self, peak, total_steps, cut=0.1, ratio=32):
        check_peak(peak)
        if not (total_steps >= 1 and 0.0 < cut < 1.0 and ratio >= 1):
            raise ValueError(
                "`total_steps` and `ratio` must be >= 1, `cut` in (0, 1). "
                f"Received: {total_steps}, {ratio} and {cut}."
            )
        self.peak, self.total_steps = peak, total_steps
        self.cut, self.ratio = cut, ratio

    def __call__(self, step):
        """Returns the rate of a step, counted from 0."""
        step = ops.cast(step, "float32")
        top = max(1, int(self.total_steps * self.cut))
        down = (step - top) / (top * (1 / self.cut - 1))
        share = ops.where(step < top, step / top, ops.maximum(0.0, 1 - down))
        return self.peak * (1 + share * (self.ratio - 1)) / self.ratio

    def get_config(self):
        """Returns the arguments of `__init__`."""
        return {
            "peak": self.peak,
            "total_steps": self.total_steps,
            "cut": self.cut,
            "ratio": self.ratio,
        }


class GradualAdam(AdamW):
    """Adam with a rate for each group of variables, some of them frozen.

    A frozen group keeps its weights bit by bit, and gathers no means. When it
    is unfrozen, its own count of steps begins.

    Source: Howard and Ruder (2018), sections 3.2 and 3.3.

    Args:
        groups: Lists of variables, the lowest layer first.
        factor: What the rate is divided by from each group to the one below.
        **kwargs: Keywords of AdamW; `beta_1` is 0.7 and `beta_2` 0.99 where
            nothing else is said, and there is no decay.

    Raises:
        ValueError: `groups` is empty, or `factor` is below 1.
    """

    # As in Keras: each group counts its own steps, so that little is shared.
    _apply_weight_decay = keras.optimizers.AdamW._apply_weight_decay
    _backend_update_step = keras.optimizers.AdamW._backend_update_step

    def __init__(self, groups, factor=FACTOR, **kwargs):
        if not groups or not factor >= 1:
            raise ValueError(
                "`groups` must hold a group, `factor` must be >= 1. "
                f"Received: {len(groups)} groups and {factor}."
            )
        options = {"beta_1": 0.7, "beta_2": 0.99, "weight_decay": 0.0}
        super().__init__(**options | kwargs)
        count = len(groups)
        self.shares = [factor ** (i + 1 - count) for i in range(count)]
        self.group_of = [i for i in range(count) for _ in groups[i]]
        self.build([variable for group in groups for variable in group])

    def build(self, variables):
        """Creates what is kept of each variable; called by `__init__`."""
        if not self.built:
            super().build(variables)
            self.opened = self.add_variable(
                (len(self.shares),), initializer="zeros", name="opened"
            )
            self.opened.assign(np.full(len(self.shares), FROZEN))

    def unfreeze(self, count):
        """Trains the `count` highest groups from now on.

        Raises:
            ValueError: There are not so many groups.
        """
        if not 1 <= count <= len(self.shares):
            raise ValueError(
                f"`count` must be in [1, {len(self.shares)}]. "
                f"Received: {count}."
            )
        opened = np.array(ops.convert_to_numpy(self.opened))
        is_trained = np.arange(len(opened)) >= len(opened) - count
        now = float(ops.convert_to_numpy(self.iterations))
        opened[~is_trained] = FROZEN
        opened[is_trained & (opened == FROZEN)] = now
        self.opened.assign(opened)

    def update_step(self, gradient, variable, learning_rate):
        """Takes a step of one variable, or none where it is frozen."""
        index = self._get_variable_index(variable)
        opened = ops.cast(self.opened, variable.dtype)[self.group_of[index]]
        trained = ops.cast(opened > FROZEN, variable.dtype)
        mean, square = self._momentums[index], self._velocities[index]
        gradient = ops.cast(gradient, variable.dtype)
        step = ops.cast(self.iterations, variable.dtype) - opened + 1
        new = trained * (1 - self.beta_1) * (gradient - mean)
        self.assign_add(mean, new)
        new = trained * (1 - self.beta_2) * (ops.square(gradient) - square)
        self.assign_add(square, new)
        unbiased = mean / (1 - ops.power(self.beta_1, step))
        root = ops.sqrt(square / (1 - ops.power(self.beta_2, step)))
        share = self.shares[self.group_of[index]]
        rate = trained * ops.cast(learning_rate, variable.dtype) * share
        self.assign_sub(variable, rate * unbiased / (root + self.epsilon))


def layer_groups(classifier):
    """Returns the variables of a classifier, the token table's first.

    Args:
        classifier: A built `TextClassifier` whose reader is an
            `LSTMLanguageModel`.

    Returns:
        A list of lists: token table, each layer of LSTM, the head.
    """
    reader = classifier.reader
    parts = [reader.token, *reader.stack.parts, classifier.head]
    return [part.trainable_variables for part in parts]


def fit_gradually(
    classifier, batch, labels, loss, epochs, peak, *, gradual=True,
    factor=FACTOR, batch_size=32,
):  # fmt: skip
    """Fine-tunes a classifier as ULMFiT does.

    Args:
        classifier: A `TextClassifier` whose reader is an
            `LSTMLanguageModel`.
        batch: `input_ids` and `attention_mask`, `(n, S)`.
        labels: `(n,)`.
        loss: A loss of logits and labels.
        epochs: How often every row is seen.
        peak: The highest rate, that of the head.
        gradual: Whether to begin with the head alone and unfreeze one group
            more each epoch; else all are trained from the start.
        factor: As in `GradualAdam`; 1 for one rate.
        batch_size: Rows an update.

    Returns:
        The mean loss of each epoch.

    Raises:
        ValueError: There are fewer epochs than groups to unfreeze.
    """
    classifier({name: rows[:1] for name, rows in batch.items()})  # builds it
    groups = layer_groups(classifier)
    if gradual and epochs < len(groups):
        raise ValueError(
            f"`epochs` must be >= {len(groups)}, one a group. "
            f"Received: {epochs}."
        )
    steps = epochs * -(-len(labels) // batch_size)
    adam = GradualAdam(
        groups, factor, learning_rate=SlantedTriangular(peak, steps)
    )
    classifier.compile(adam, loss, jit_compile=may_compile(False))
    losses = []
    for epoch in range(epochs):
        count = min(epoch + 1, len(groups)) if gradual else len(groups)
        adam.unfreeze(count)
        history = classifier.fit(
            batch, labels, batch_size=batch_size, verbose=0
        )
        losses += history.history["loss"]
    return losses
