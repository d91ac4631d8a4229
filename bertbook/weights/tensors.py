"""Safetensors files of a folder, whole or in shards, and its config.json."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from bertbook.files import read_json, write_json, write_whole

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
FLOATS = ("F64", "F32", "F16", "BF16")  # as safetensors calls them


def write_tensors(
    folder: Path,
    config: Any,
    tensors: Mapping[str, np.ndarray],
    max_shard_bytes: int | None = None,
) -> None:
    """Writes config.json and tensors under the names that are given.

    Each file appears whole or not at all, the weights last.

    Args:
        folder: Made where it is missing.
        config: What has a method `to_json`.
        tensors: Contiguous arrays.
        max_shard_bytes: Most bytes of tensors a file; above it there are
            several and an index. None writes one file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with write_whole(folder / "config.json") as part:
        config.to_json(part)
    files = _assign_files(tensors, max_shard_bytes)
    for file, held in files.items():
        with write_whole(folder / file) as part:
            safetensors.numpy.save_file(
                {name: tensors[name] for name in held},
                part,
                metadata={"format": "pt"},
            )
    _write_index(folder, tensors, files)


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
        f"model-{number:05d}-of-{len(groups):05d}.safetensors": group
        for number, group in enumerate(groups, start=1)
    }


def _write_index(folder, tensors, files) -> None:
    """Writes the index of several files; removes what it would contradict."""
    stale = {path.name for path in folder.glob("model*.safetensors")}
    for name in stale - files.keys():
        (folder / name).unlink()
    if len(files) == 1:
        (folder / INDEX).unlink(missing_ok=True)
        return
    index = {
        "metadata": {"total_size": sum(t.nbytes for t in tensors.values())},
        "weight_map": {name: f for f, held in files.items() for name in held},
    }
    write_json(folder / INDEX, index)


def open_tensors(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yields the name of every tensor of a folder, and its open file.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A file is damaged, or lacks what the index says.
    """
    for path, promised in _weight_files(folder).items():
        if not path.is_file():
            raise FileNotFoundError(f"No weights at {path}.")
        try:
            with safetensors.safe_open(path, "numpy") as file:
                missing = promised - set(file.keys())
                if missing:
                    raise ValueError(
                        f"{path} must hold what {INDEX} says. Missing: "
                        f"{', '.join(sorted(missing))}."
                    )
                for name in file.keys():  # noqa: SIM118, it is no mapping
                    yield name, file
        except safetensors.SafetensorError as error:
            raise ValueError(f"{path} is damaged: {error}.") from error


def read_floats(file: Any, name: str) -> np.ndarray:
    """Reads one tensor of an open safetensors file as float32."""
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
    raise FileNotFoundError(
        f"{folder} holds no {WEIGHTS}. A pickled file (pytorch_model.bin) is "
        "not opened, because opening one can run code; convert it first."
    )


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
