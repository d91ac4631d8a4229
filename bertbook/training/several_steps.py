"""Several steps of training in one call of the device, on JAX.

Between two calls the device waits for Python, which reads the logs of a step
and hands over the next batch. A small model computes for less time than that.
Keras' `steps_per_execution` calls the device as often as before on JAX, up to
its version 3.15. Here the device takes the steps in a loop, the `scan` of JAX.
"""

import itertools

from bertbook.runtime import keras


def several_steps(model):
    """Returns what `fit` calls for `steps_per_execution` steps of a model.

    Args:
        model: A compiled model. The batches of a call have one shape.

    Returns:
        A function of the state of the model and an iterator of batches. It
        returns the logs of the last step and the new state.
    """
    import jax

    def compute(state, batches):
        stacked = jax.tree.map(lambda *parts: jax.numpy.stack(parts), *batches)

        def step(state, batch):
            logs, state = model.train_step(state, batch)
            return state, logs

        state, logs = jax.lax.scan(step, state, stacked)
        return jax.tree.map(lambda values: values[-1], logs), state

    shardings = None
    if keras.distribution.distribution() is not None:
        shardings = (None, model._get_state_sharding_spec())
    compiled = jax.jit(compute, donate_argnums=0, out_shardings=shardings)

    def function(state, iterator):
        first = next(iterator)
        rest = itertools.islice(iterator, model.steps_per_execution - 1)
        return compiled(state, (first, *rest))

    return function
