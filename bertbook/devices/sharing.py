"""`Share`: which rows of a batch this process computes, and on which devices.

Keras splits the rows of a batch over devices, and the weights too where a
layout says so. All of it is for JAX. The batch stays that of one device: so a
run gives the same losses on any number of devices and processes.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from bertbook.checks import check_count, check_switch
from bertbook.devices.processes import process_count
from bertbook.runtime import keras

BATCH, MODEL = "batch", "model"  # the axes of the devices

# Which axis of a weight is split over the devices of one copy of the model: the
# heads, and the width between the two products of a feed-forward layer. Then
# each of these pairs of products needs one sum over the devices, as in
# Shoeybi et al. (2019), https://arxiv.org/abs/1909.08053, section 3.
LAYOUTS = {
    ".*/attention/query_key_value/kernel": (None, MODEL),
    ".*/attention/query_key_value/bias": (MODEL,),
    ".*/attention/output/kernel": (MODEL, None),
    ".*/feed_forward/expand/kernel": (None, MODEL),
    ".*/feed_forward/expand/bias": (MODEL,),
    ".*/feed_forward/contract/kernel": (MODEL, None),
}


class Share(NamedTuple):
    """How the rows of a batch are split.

    Attributes:
        groups: Parts of equal size that the rows are split into.
        distribution: That of Keras, None for one device.
    """

    groups: int = 1
    distribution: Any = None

    def round_up(self, rows: int) -> int:
        """Returns the least number of rows from `rows` on that can be split."""
        return -(-rows // self.groups) * self.groups

    def own_rows(self, rows: int) -> slice:
        """Returns which of so many rows the devices of this process compute."""
        if self.distribution is None or process_count() == 1:
            return slice(0, rows)
        layout = self.distribution.get_data_layout((rows,)).backend_layout
        slices = layout.addressable_devices_indices_map((rows,)).values()
        bounds = [part.indices(rows) for (part,) in slices]
        return slice(min(b[0] for b in bounds), max(b[1] for b in bounds))

    def own(self, arrays: Any) -> Any:
        """Returns the rows of this process of arrays in any structure."""
        rows = len(keras.tree.flatten(arrays)[0])
        part = self.own_rows(rows)
        return keras.tree.map_structure(lambda array: array[part], arrays)


WHOLE = Share()


def current_share() -> Share:
    """Returns how batches are split under the distribution that is set."""
    if keras.backend.backend() != "jax":
        return WHOLE
    distribution = keras.distribution.distribution()
    if distribution is None:
        return WHOLE
    return Share(distribution.num_model_replicas, distribution)


def make_distribution(model_parallel: int = 1) -> Any:
    """Returns a distribution of Keras over the devices of all processes.

    Args:
        model_parallel: Devices that share one copy of the model.

    Raises:
        ValueError: The backend is not JAX, or the devices cannot be split so.
    """
    if keras.backend.backend() != "jax":
        raise ValueError(
            "`data_parallel` needs the JAX backend. Received: "
            f"{keras.backend.backend()}."
        )
    check_count(model_parallel, "model_parallel")
    devices = _devices()
    if model_parallel == 1:
        return keras.distribution.DataParallel(
            devices=devices, auto_shard_dataset=False
        )
    if process_count() > 1:
        raise ValueError(
            "`model_parallel` must be 1 where several processes train. "
            f"Received: {model_parallel}."
        )
    if len(devices) % model_parallel:
        raise ValueError(
            "`model_parallel` must divide the number of devices, "
            f"{len(devices)}. Received: {model_parallel}."
        )
    mesh = keras.distribution.DeviceMesh(
        (len(devices) // model_parallel, model_parallel),
        [BATCH, MODEL],
        np.array(devices).reshape(-1, model_parallel),
    )
    layouts = keras.distribution.LayoutMap(mesh)
    for pattern, axes in LAYOUTS.items():
        layouts[pattern] = keras.distribution.TensorLayout(axes, mesh)
    return keras.distribution.ModelParallel(
        layout_map=layouts, batch_dim_name=BATCH, auto_shard_dataset=False
    )


def _devices() -> list[str]:
    """Returns the names of all devices, those of a process side by side."""
    import jax

    devices = sorted(jax.devices(), key=lambda d: (d.process_index, d.id))
    return [f"{device.platform}:{device.id}" for device in devices]


@contextlib.contextmanager
def shared_devices(data_parallel: bool, model_parallel: int) -> Iterator[Share]:
    """Splits batches over all devices while the `with` statement lasts.

    A distribution that is set already stays.

    Args:
        data_parallel: Whether to.
        model_parallel: As in `make_distribution`; more than 1 splits, too.

    Yields:
        How batches are split.
    """
    check_switch(data_parallel, "data_parallel")
    check_count(model_parallel, "model_parallel")
    before = None
    if keras.backend.backend() == "jax":
        before = keras.distribution.distribution()
    if before is not None or not (data_parallel or model_parallel > 1):
        yield current_share()
        return
    keras.distribution.set_distribution(make_distribution(model_parallel))
    try:
        yield current_share()
    finally:
        keras.distribution.set_distribution(None)


def share_all_devices() -> None:
    """Splits batches over the devices of all processes from now on."""
    keras.distribution.set_distribution(make_distribution())
