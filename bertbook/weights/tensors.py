"""Safetensors files of a folder, whole or in shards, and its config.json."""

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from bertbook.files import read_json, write_json
from bertbook.locations import INDEX, SHARD, WEIGHTS

SET = "set"  # in each of several files: what the files of one save share
FLOATS = ("F64", "F32", "F16", "BF16")  # as safetensors calls them


def write_tensors(
    folder: Path,
    config: Any,
    tensors: Mapping[str, np.ndarray],
    max_shard_bytes: int | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes config.json and tensors under the names that are given.

    Args:
        folder: One that `files.write_together` yields, so that all files take
            effect together.
        config: What has a method `to_json`.
        tensors: Contiguous arrays.
        max_shard_bytes: Most bytes of tensors a file; above it there are
            several and an index. None writes one file.
        metadata: What to keep in the header of each file.

    Raises:
        OSError: The disk is full, or `folder` cannot be written.
    """
    config.to_json(folder / "config.json")
    files = _assign_files(tensors, max_shard_bytes)
    header = {**(metadata or {}), "format": "pt"}
    if len(files) > 1:
        header[SET] = _digest(tensors)
        _write_index(folder / INDEX, tensors, files, header[SET])
    for file, held in files.items():
        part = {name: tensors[name] for name in held}
        write_file(folder / file, part, header)


def write_file(
    path: Path, tensors: dict[str, np.ndarray], metadata: dict[str, str]
) -> None:
    """Writes one safetensors file; the same tensors give the same bytes.

    Args:
        path: Of a file that `files.write_whole` or `files.write_together`
            yields; they name the user's path where the disk is full.
        tensors: Contiguous arrays.
        metadata: What to keep in the header.
    """
    safetensors.numpy.save_file(tensors, path, metadata=metadata)
    with open(path, "rb+") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        # The library writes the metadata in an order that changes.
        header["__metadata__"] = dict(sorted(metadata.items()))
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False)
        file.seek(8)
        file.write(text.encode().ljust(size))


def _digest(tensors: Mapping[str, np.ndarray]) -> str:
    """Returns a hash of all tensors: what the files of one save share."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].shape}".encode())
        digest.update(tensors[name].data)
    return digest.hexdigest()


def _assign_files(
    tensors: Mapping[str, np.ndarray], max_shard_bytes: int | None
) -> dict[str, list[str]]:
    """Returns which tensors go into which file."""
    groups: list[list[str]] = [[]]
    room = max_shard_bytes
    for name, tensor in tensors.items():
        if room is not None and max_shard_bytes is not None:
            if groups[-1] and tensor.nbytes > room:
                groups.append([])
                room = max_shard_bytes
            room -= tensor.nbytes
        groups[-1].append(name)
    if len(groups) == 1:
        return {WEIGHTS: groups[0]}
    return {
        SHARD.format(number, len(groups)): group
        for number, group in enumerate(groups, start=1)
    }


def _write_index(path, tensors, files, set_digest) -> None:
    """Writes the index of several files."""
    index = {
        "metadata": {
            "total_size": sum(t.nbytes for t in tensors.values()),
            SET: set_digest,
        },
        "weight_map": {name: f for f, held in files.items() for name in held},
    }
    write_json(path, index)


def read_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Returns the shape of every tensor of a folder, from the headers alone.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A file is damaged.
    """
    return {
        name: tuple(file.get_slice(name).get_shape())
        for name, file in open_tensors(folder)
    }


def read_metadata(folder: Path) -> dict[str, str]:
    """Returns what the headers of a folder's files say beside the tensors.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A file is damaged, or does not belong to the others.
    """
    metadata: dict[str, str] = {}
    digests = {}
    for path in _weight_files(folder):
        with _opened(path) as file:
            metadata |= file.metadata() or {}
            digests[path.name] = (file.metadata() or {}).get(SET)
    if not (folder / WEIGHTS).is_file():
        index = read_json(folder / INDEX).get("metadata")
        known = index.get(SET) if isinstance(index, dict) else None
        digests[INDEX] = known
    if len(digests) > 1 and len(set(digests.values())) > 1:
        raise ValueError(
            f"{folder} must hold the files of one model. Received: "
            f"{', '.join(sorted(digests))}, which were not written together."
        )
    return metadata


def weights_name(folder: Path) -> Path:
    """Returns the file that stands for the weights of a folder, in messages."""
    name = WEIGHTS if (folder / WEIGHTS).is_file() else INDEX
    return folder / name


def open_tensors(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yields the name of every tensor of a folder, and its open file.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A file is damaged, or lacks what the index says.
    """
    for path, promised in _weight_files(folder).items():
        with _opened(path) as file:
            missing = promised - set(file.keys())
            if missing:
                raise ValueError(
                    f"{path} must hold what {INDEX} says. Missing: "
                    f"{', '.join(sorted(missing))}."
                )
            for name in file.keys():  # noqa: SIM118, it is no mapping
                yield name, file


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Opens a safetensors file.

    Raises:
        FileNotFoundError: It is missing.
        ValueError: It is damaged.
    """
    if not path.is_file():
        raise FileNotFoundError(f"No weights at {path}.")
    try:
        with safetensors.safe_open(path, "numpy") as file:
            yield file
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path} is damaged: {error}.") from error


def read_floats(file: Any, name: str) -> np.ndarray:
    """Reads one tensor of an open safetensors file as float32.

    Raises:
        ValueError: The tensor holds other numbers.
    """
    kind = file.get_slice(name).get_dtype()
    if kind not in FLOATS:
        raise ValueError(
            f"{name} must hold floats of {', '.join(FLOATS)}; a quantized "
            f"file is not read. Received: {kind}."
        )
    return file.get_tensor(name).astype("float32")


def has_tensors(folder: Path) -> bool:
    """Returns whether a folder holds such a file, or an index of several."""
    return any((folder / name).is_file() for name in (WEIGHTS, INDEX))


def _weight_files(folder: Path) -> dict[Path, set[str]]:
    """Returns the files of a folder, and the tensors an index puts there.

    Raises:
        FileNotFoundError: There is no safetensors file.
        ValueError: The index is damaged, or names a file outside the folder.
    """
    if (folder / WEIGHTS).is_file():
        return {folder / WEIGHTS: set()}
    if (folder / INDEX).is_file():
        weight_map: Any = read_json(folder / INDEX).get("weight_map")
        _check_weight_map(weight_map, folder / INDEX)
        files: dict[Path, set[str]] = {}
        for name, file in sorted(weight_map.items()):
            files.setdefault(folder / file, set()).add(name)
        return files
    raise FileNotFoundError(f"{folder} holds no {WEIGHTS}.{_advice(folder)}")


# What other libraries call weights that are not read, and how they become
# files that are: with PyTorch, and with a release of transformers that reads
# weights of TensorFlow and Flax.
OTHER_WEIGHTS = {
    "pytorch_model.bin": (
        "A pickled file can run code, so it is not opened here; where you "
        'trust it, `python -c "import torch, safetensors.torch as s; '
        "s.save_file({{k: v.clone() for k, v in torch.load("
        "'pytorch_model.bin', weights_only=True).items()}}, "
        "'model.safetensors')\"` in {folder} converts it"
    ),
    "tf_model.h5": (
        "transformers 4 converts it: `AutoModelForPreTraining."
        "from_pretrained('{folder}', from_tf=True).save_pretrained('new')`, "
        "or the class of its task"
    ),
    "flax_model.msgpack": (
        "transformers 4 converts it: `AutoModelForPreTraining."
        "from_pretrained('{folder}', from_flax=True).save_pretrained('new')`, "
        "or the class of its task"
    ),
}


def _advice(folder: Path) -> str:
    """Returns how weights in another format become readable, where some are."""
    for name, advice in OTHER_WEIGHTS.items():
        stem, _, suffix = name.partition(".")
        if any(folder.glob(f"{stem}*.{suffix}")):
            return f" It holds {name}. {advice.format(folder=folder)}."
    return ""


def _check_weight_map(weight_map: Any, path: Path) -> None:
    if not isinstance(weight_map, dict) or not weight_map:
        raise ValueError(
            f"{path}: `weight_map` must be an object that names files. "
            f"Received: {weight_map!r}."
        )
    for file in weight_map.values():
        if not isinstance(file, str) or Path(file).name != file:
            raise ValueError(
                f"{path}: `weight_map` must name files of its own folder. "
                f"Received: {file!r}."
            )
