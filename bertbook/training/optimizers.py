"""AdamW as BERT uses it: warm-up, linear decay, no decay of norms and biases.

Differences: Adam's bias correction is on, as everywhere but in Google's code;
with a warm-up it changes little. Epsilon is added after it, as in both papers
and in PyTorch; Keras adds it before.
"""

import math
from numbers import Real
from typing import Any, NamedTuple

from bertbook.checks import as_number
from bertbook.runtime import keras, ops

UNDECAYED = ("bias", "gamma", "beta")  # names of biases and norms


class Shared(NamedTuple):
    """What all variables share in a step: scalar tensors."""

    rate: Any
    power_1: Any  # beta_1 to the power of the step
    power_2: Any
    correction: Any  # of the root of the squares: sqrt(1 - power_2)
    epsilon: Any  # times the correction


@keras.saving.register_keras_serializable("bertbook")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Raises the learning rate linearly, then lowers it linearly.

    Source: Devlin et al. (2019), appendix A.2.

    Args:
        peak: The highest rate, reached at the last step of the warm-up.
        warmup_steps: Steps on the way up, at least 1.
        total_steps: All steps.
        accumulation: Batches that make one step.
        end: Share of the peak that is left after the last step; above 0 for a
            run that will be continued.

    Raises:
        ValueError: A number is out of range, or the warm-up is longer than
            the run.
    """

    def __init__(
        self, peak, warmup_steps, total_steps, accumulation=1, end=0.0
    ):
        if not 1 <= warmup_steps <= total_steps or not accumulation >= 1:
            raise ValueError(
                "`warmup_steps` must be in [1, `total_steps`], `accumulation` "
                f">= 1. Received: {warmup_steps}, {total_steps}, "
                f"{accumulation}."
            )
        check_peak(peak)
        if not 0.0 <= end <= 1.0:
            raise ValueError(f"`end` must be in [0, 1]. Received: {end}.")
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps
        self.accumulation = accumulation
        self.end = end

    def __call__(self, step):
        """Returns the rate of a step, counted from 0."""
        step = ops.cast(step // self.accumulation, "float32")
        up = (step + 1.0) / self.warmup_steps
        down = self.total_steps - self.warmup_steps + 1
        left = ops.maximum(0.0, (self.total_steps - step) / down)
        return self.peak * ops.minimum(up, self.end + (1 - self.end) * left)

    def get_config(self):
        """Returns the arguments of `__init__`."""
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "total_steps": self.total_steps,
            "accumulation": self.accumulation,
            "end": self.end,
        }


@keras.saving.register_keras_serializable("bertbook")
class InverseSquareRootDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Raises the learning rate linearly, then lowers it as 1 / sqrt(step).

    It need not know how long a run will be. After four times the warm-up the
    rate is half the peak.

    Source: Vaswani et al. (2017), equation 3, where the peak is 1 over the
    root of D times `warmup_steps`.

    Args:
        peak: The highest rate, reached at the last step of the warm-up.
        warmup_steps: Steps on the way up, at least 1.

    Raises:
        ValueError: A number is out of range.
    """

    def __init__(self, peak, warmup_steps):
        if not warmup_steps >= 1:
            raise ValueError(
                f"`warmup_steps` must be >= 1. Received: {warmup_steps}."
            )
        check_peak(peak)
        self.peak = peak
        self.warmup_steps = warmup_steps

    def __call__(self, step):
        """Returns the rate of a step, counted from 0."""
        share = (ops.cast(step, "float32") + 1.0) / self.warmup_steps
        return self.peak * ops.minimum(share, ops.rsqrt(share))

    def get_config(self):
        """Returns the arguments of `__init__`."""
        return {"peak": self.peak, "warmup_steps": self.warmup_steps}


def count_warmup_steps(steps, share):
    """Returns how many of some steps are on the way up, one at least."""
    return max(1, round(steps * share))


def check_peak(peak):
    """Refuses a highest learning rate that is not above 0, and finite.

    Raises:
        ValueError: It is not.
    """
    if not 0 < as_number(peak) < math.inf:
        raise ValueError(f"`peak` must be above 0. Received: {peak!r}.")


@keras.saving.register_keras_serializable("bertbook")
class AdamW(keras.optimizers.AdamW):
    """Keras' AdamW, with the papers' epsilon and one norm on every backend.

    TensorFlow gives the gradient of a table as one row for each time that a
    row was looked up. Keras takes the norm of those; here they are added up
    first.

    Source: Kingma and Ba (2015), algorithm 1; Loshchilov and Hutter (2019),
    algorithm 2.

    Args:
        compiled: Whether XLA compiles the update of all variables into few
            passes over memory, where the step around it is a TensorFlow graph
            that XLA does not compile.
        adjustable: Whether `learning_rate` may be set where it follows a
            schedule, as `ReduceLROnPlateau` does: the schedule goes on, times
            a factor, which is a variable of the optimizer.
        **kwargs: Keywords of Keras' AdamW but `amsgrad`.

    Raises:
        ValueError: A keyword is out of range, or `amsgrad` is on.
    """

    def __init__(self, *, compiled=False, adjustable=False, **kwargs):
        if kwargs.get("amsgrad"):
            raise ValueError(
                "`amsgrad` is not in this AdamW. Use that of Keras."
            )
        _check_rates(kwargs)
        super().__init__(**kwargs)
        self.compiled = compiled
        self.adjustable = adjustable

    def build(self, variables):
        """Creates the variables of the optimizer."""
        if self.built:
            return
        super().build(variables)
        if self.adjustable:
            self.factor = self.add_variable(
                (), "ones", "float32", name="rate_factor"
            )

    @property
    def learning_rate(self):
        """The rate of the next step."""
        return self._get_current_learning_rate()

    @learning_rate.setter
    def learning_rate(self, value):
        if not (self.adjustable and self.built):
            keras.optimizers.AdamW.learning_rate.fset(self, value)
            return
        scheduled = float(super()._get_current_learning_rate())
        if scheduled > 0:
            self.factor.assign(value / scheduled)

    def _get_current_learning_rate(self):
        """Returns the rate that every update asks for."""
        rate = super()._get_current_learning_rate()
        is_scaled = self.adjustable and self.built
        return rate * self.factor if is_scaled else rate

    def apply(self, grads, trainable_variables=None):
        """Takes a step of all variables."""
        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            grads = [g if g is None else tf.convert_to_tensor(g) for g in grads]
            grads = self._clip_together(grads)
            if self.compiled and not tf.executing_eagerly():
                step = super().apply
                return tf.function(
                    lambda grads: step(grads, trainable_variables),
                    jit_compile=True,
                    autograph=False,
                )(grads)
        super().apply(grads, trainable_variables)

    def _clip_together(self, grads):
        """Clips the gradients of all replicas of `tf.distribute` together.

        Keras clips those of each replica, and adds them up afterwards. Here
        they are added up first; each replica then holds its share of the sum,
        too small to be clipped again.
        """
        import tensorflow as tf

        context = tf.distribute.get_replica_context()
        replicas = 1 if context is None else context.num_replicas_in_sync
        is_plain = not self.global_clipnorm or self.gradient_accumulation_steps
        if replicas == 1 or is_plain:
            return grads
        present = [grad for grad in grads if grad is not None]
        sums = context.all_reduce(tf.distribute.ReduceOp.SUM, present)
        clipped, _ = tf.clip_by_global_norm(sums, self.global_clipnorm)
        shares = iter([grad / replicas for grad in clipped])
        return [None if grad is None else next(shares) for grad in grads]

    def _all_reduce_sum_gradients(self, grads_and_vars):
        """Adds up what the replicas of `tf.distribute` found.

        One alone has nothing to add, and TensorFlow would keep the graph of
        the sum, with the model in it, as long as the process lives.
        """
        import tensorflow as tf

        context = tf.distribute.get_replica_context()
        if context is None or context.num_replicas_in_sync > 1:
            return super()._all_reduce_sum_gradients(grads_and_vars)
        return list(grads_and_vars)

    def get_config(self):
        """Returns the arguments of `__init__`."""
        return {
            **super().get_config(),
            "compiled": self.compiled,
            "adjustable": self.adjustable,
        }

    def _apply_weight_decay(self, variables):
        """Leaves the decay to `update_step`, where the rate is known."""

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        """Takes a step of all variables; computes once what they share."""
        step = ops.cast(self.iterations + 1, "float32")
        power_1, power_2 = (
            ops.power(b, step) for b in (self.beta_1, self.beta_2)
        )
        c2 = ops.sqrt(1 - power_2)
        rate = ops.cast(learning_rate, "float32")
        shared = Shared(rate, power_1, power_2, c2, self.epsilon * c2)
        super()._backend_update_step(grads, trainable_variables, shared)

    def update_step(self, gradient, variable, learning_rate, factor=1.0):
        """Takes a step of one variable.

        Args:
            gradient: A tensor like the variable.
            variable: The variable.
            learning_rate: What all variables share, `Shared`.
            factor: What the rate of the step is multiplied by, not that of
                the decay.
        """
        dtype = variable.dtype
        rate, power_1, power_2, c2, epsilon = (
            ops.cast(number, dtype) for number in learning_rate
        )
        if self.weight_decay is not None and self._use_weight_decay(variable):
            self.assign_sub(variable, variable * self.weight_decay * rate)
        index = self._get_variable_index(variable)
        mean, square = self._momentums[index], self._velocities[index]
        gradient = ops.cast(gradient, dtype)
        rate = rate if factor == 1.0 else rate * factor
        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            tf.raw_ops.ResourceApplyAdam(  # all of the below in one pass
                var=variable.handle,
                m=mean.value.handle,
                v=square.value.handle,
                beta1_power=power_1,
                beta2_power=power_2,
                lr=rate,
                beta1=self.beta_1,
                beta2=self.beta_2,
                epsilon=epsilon,
                grad=gradient,
            )
            return
        new = (1 - self.beta_1) * (gradient - mean)
        self.assign_add(mean, new)
        new = (1 - self.beta_2) * (ops.square(gradient) - square)
        self.assign_add(square, new)
        # mean / c1 / (sqrt(square) / c2 + epsilon), with numbers moved out
        rate = rate * c2 / (1 - power_1)
        self.assign_sub(variable, rate * mean / (ops.sqrt(square) + epsilon))


def _check_rates(options):
    """Refuses numbers with which AdamW learns nothing, or not a number.

    Args:
        options: Keywords of Keras' AdamW; None stands for "never".

    Raises:
        ValueError: A number is NaN or out of range.
    """
    ranges = {  # a function of the number, and its words
        "weight_decay": (lambda n: 0 <= n < math.inf, ">= 0, and finite"),
        "global_clipnorm": (lambda n: 0 < n < math.inf, "above 0"),
        "beta_1": (lambda n: 0 <= n < 1, "in [0, 1)"),
        "beta_2": (lambda n: 0 <= n < 1, "in [0, 1)"),
        "epsilon": (lambda n: 0 < n < math.inf, "above 0"),
    }
    if isinstance(options.get("learning_rate"), Real):  # or it is a schedule
        words = ">= 0, and finite"
        ranges["learning_rate"] = (lambda n: 0 <= n < math.inf, words)
    for name, (is_inside, words) in ranges.items():
        value = options.get(name)
        if value is not None and not is_inside(as_number(value)):
            raise ValueError(f"`{name}` must be {words}. Received: {value!r}.")


@keras.saving.register_keras_serializable("bertbook")
class LayerwiseAdamW(AdamW):
    """AdamW with a rate of its own for each variable.

    The decay, which is small beside it, keeps the common rate.

    Source: Howard and Ruder (2018), section 3.2, discriminative fine-tuning.

    Args:
        rates: Factors of the rate, one for each variable that is trained, in
            their order.
        **kwargs: Keywords of AdamW.
    """

    def __init__(self, rates, **kwargs):
        super().__init__(**kwargs)
        self.rates = list(rates)

    def update_step(self, gradient, variable, learning_rate):
        """Takes a step of one variable, its rate multiplied."""
        factor = self.rates[self._get_variable_index(variable)]
        super().update_step(gradient, variable, learning_rate, factor)

    def get_config(self):
        """Returns the arguments of `__init__`."""
        return {**super().get_config(), "rates": self.rates}


def make_optimizer(
    learning_rate,
    weight_decay=0.01,
    clip_norm=1.0,
    beta_2=0.999,
    epsilon=1e-6,
    accumulation=1,
    scale_loss=False,
    kind=AdamW,
    compiled=False,
):
    """Returns AdamW without decay of norms and biases, gradients clipped.

    Source: Devlin et al. (2019), appendix A.2, and `optimization` of Google's
    code; Loshchilov and Hutter (2019) for the decay.

    Args:
        learning_rate: A number, or one of the schedules above.
        weight_decay: Share of a weight taken off, times the learning rate.
        clip_norm: Largest norm of all gradients together; None never clips.
        beta_2: Decay of the mean of squared gradients.
        epsilon: What keeps the divisor above 0.
        accumulation: Batches whose gradients make one step; their losses must
            be such that the mean over the batches is wanted.
        scale_loss: Whether to scale the loss for float16, whose numbers end
            at 65,504 and start at 6e-8.
        kind: AdamW, or what takes the same keywords.
        compiled: As in `AdamW`.
    """
    optimizer = kind(
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        beta_2=beta_2,
        epsilon=epsilon,
        global_clipnorm=clip_norm,
        gradient_accumulation_steps=None if accumulation == 1 else accumulation,
        compiled=compiled,
    )
    optimizer.exclude_from_weight_decay(var_names=list(UNDECAYED))
    if scale_loss:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    return optimizer
