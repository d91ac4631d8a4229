"""Keras' callbacks in a fine-tuning run, called epoch by epoch.

A run is one call of `fit` over all its steps, so that it can resume at any of
them; `EpochCallbacks` gives callbacks the epochs that they know.
"""

import importlib.util
from typing import Any

from bertbook.runtime import keras

REFUSED = {
    "LearningRateScheduler": "the rate follows `learning_rate` and `warmup`",
    "BackupAndRestore": "with `out` the same call resumes",
}


class EpochCallbacks(keras.callbacks.Callback):
    """Calls callbacks as `fit` does for a run of several epochs.

    Args:
        callbacks: The callbacks.
        epochs: Epochs of the whole run.
        steps_per_epoch: Steps of each.
        done: Steps done before.
        scores: A function that returns the latest scores on dev, by the names
            of the history.
        parts: Batches of `fit` that make one step; the callbacks see steps.
    """

    def __init__(
        self, callbacks, epochs, steps_per_epoch, done, scores, parts=1
    ):
        super().__init__()
        self.callbacks = callbacks
        self.facts = {"epochs": epochs, "steps": steps_per_epoch, "verbose": 0}
        self.steps_per_epoch = steps_per_epoch
        self.first = done
        self.scores = scores
        self.parts = parts

    def set_model(self, model):
        """Gives every callback the model."""
        super().set_model(model)
        for callback in self.callbacks:
            callback.set_model(model)

    def on_train_begin(self, logs=None):
        """Begins the run."""
        for callback in self.callbacks:
            callback.set_params(dict(self.facts))
        self._call("on_train_begin", logs)

    def on_train_batch_begin(self, batch, logs=None):
        """Begins a step, and before the first of an epoch the epoch."""
        number, part = divmod(batch, self.parts)
        if part != 0:
            return
        epoch, step = divmod(self.first + number, self.steps_per_epoch)
        if step == 0 or batch == 0:
            self._call("on_epoch_begin", epoch)
        self._call("on_train_batch_begin", step, logs)

    def on_train_batch_end(self, batch, logs=None):
        """Ends a step, and after the last of an epoch the epoch."""
        number, part = divmod(batch, self.parts)
        if part != self.parts - 1:
            return
        epoch, step = divmod(self.first + number, self.steps_per_epoch)
        self._call("on_train_batch_end", step, logs)
        if step == self.steps_per_epoch - 1:
            logs = {**(logs or {}), **with_aliases(self.scores())}
            self._call("on_epoch_end", epoch, logs)

    def on_train_end(self, logs=None):
        """Ends the run."""
        self._call("on_train_end", logs)

    def _call(self, hook, *values):
        """Calls one method of every callback, each with logs of its own."""
        for callback in self.callbacks:
            own = (dict(v) if isinstance(v, dict) else v for v in values)
            getattr(callback, hook)(*own)


def with_aliases(numbers: dict[str, Any]) -> dict[str, Any]:
    """Adds to the numbers of dev the names that Keras has for them.

    >>> with_aliases({"dev_loss": 0.5})
    {'dev_loss': 0.5, 'val_loss': 0.5}
    """
    aliases = {
        f"val_{name.removeprefix('dev_')}": value
        for name, value in numbers.items()
    }
    return {**numbers, **aliases}


def check_callbacks(callbacks: Any) -> list[Any]:
    """Returns the callbacks as a list.

    Raises:
        ValueError: One is no callback of Keras, or would set what `finetune`
            sets itself.
        ImportError: A package that one writes with is not installed.
    """
    if callbacks is None:
        return []
    if isinstance(callbacks, keras.callbacks.Callback):
        callbacks = [callbacks]
    if not isinstance(callbacks, list | tuple):
        raise ValueError(
            "`callbacks` must be a list of callbacks of Keras. Received: "
            f"{callbacks!r}."
        )
    for number, callback in enumerate(callbacks):
        if not isinstance(callback, keras.callbacks.Callback):
            raise ValueError(
                f"`callbacks[{number}]` must be a callback of Keras. Received: "
                f"{callback!r}."
            )
        for name, reason in REFUSED.items():
            if isinstance(callback, getattr(keras.callbacks, name)):
                raise ValueError(
                    f"`callbacks[{number}]` must not be a {name}: {reason}. "
                    f"Received: {type(callback).__name__}."
                )
        is_board = isinstance(callback, keras.callbacks.TensorBoard)
        if is_board and importlib.util.find_spec("tensorboard") is None:
            raise ImportError(  # Keras would fail after the first step
                f"`callbacks[{number}]` needs the package that TensorBoard "
                "writes with: `pip install tensorboard`."
            )
    return list(callbacks)


def sets_the_rate(callbacks: list[Any]) -> bool:
    """Returns whether a callback sets the learning rate."""
    kind = keras.callbacks.ReduceLROnPlateau
    return any(isinstance(callback, kind) for callback in callbacks)


def check_monitored(callbacks: list[Any], modes: dict[str, Any]) -> None:
    """Refuses callbacks that would wait for a number that never comes.

    One that should find out whether a number is to be large is told, which
    Keras can do for the metrics of `compile` alone.

    Args:
        callbacks: The callbacks.
        modes: For each number that a run logs "min" or "max", or None where
            nobody knows.

    Raises:
        ValueError: One looks at another number, or does not say whether it
            should be large.
    """
    kinds = (
        keras.callbacks.EarlyStopping,
        keras.callbacks.ModelCheckpoint,
        keras.callbacks.ReduceLROnPlateau,
    )
    for number, callback in enumerate(callbacks):
        looks = getattr(callback, "save_best_only", True)
        if not isinstance(callback, kinds) or not looks:
            continue
        monitored = callback.monitor
        if monitored not in modes:
            raise ValueError(
                f"`callbacks[{number}]` must monitor one of "
                f"{', '.join(modes)}. Received: {monitored!r}."
            )
        if callback.mode == "auto" and modes[monitored] is not None:
            callback.mode = modes[monitored]
        if callback.mode == "auto":
            raise ValueError(
                f"`callbacks[{number}]` must say `mode='max'` or `mode='min'` "
                f"for {monitored!r}. Received: 'auto'."
            )
