"""The record of a run: what it is made of, and whether it may go on."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertbook.files import read_json


def hash_columns(data: Mapping[str, Any] | None) -> str | None:
    """Returns a hash of columns, None for none.

    Two runs on other data are two runs.
    """
    if data is None:
        return None
    columns = {name: list(column) for name, column in data.items()}
    text = json.dumps(columns, sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Returns what JSON can hold, the same in every process."""
    if isinstance(value, set | frozenset):
        return sorted(value)
    return value.tolist() if hasattr(value, "tolist") else str(value)


def check_record(path, record):
    """Writes what a run is made of, or refuses to go on with another.

    Args:
        path: A JSON file.
        record: Everything that changes the result.

    Raises:
        ValueError: The file tells of a run with other settings; all are named.
            Or there is none, and the folder holds a model from elsewhere; or
            it is damaged.
    """
    path = Path(path)
    if path.is_file():
        stored = read_json(path)
        record = json.loads(json.dumps(record))
        old, new = _settings(stored), _settings(record)
        differing = [
            f"`{name}` was {old.get(name)!r}, now {new.get(name)!r}"
            for name in sorted(old.keys() | new.keys())
            if old.get(name) != new.get(name)
        ]
        if differing:
            raise ValueError(
                f"{path.parent} holds a run with other settings: "
                f"{'; '.join(differing)}. Name another folder, or go on with "
                "the old settings."
            )
        return
    if any(path.parent.glob("model*.safetensors")):
        raise ValueError(
            f"{path.parent} holds a model, but no {path.name} of the run that "
            "made it. Name another folder."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(record, indent=2) + "\n", "utf-8")
    unfinished.replace(path)


def _settings(record, prefix=""):
    """Returns the settings of a record by names such as `recipe.seed`."""
    settings = {}
    for key, value in record.items():
        if isinstance(value, dict):
            settings |= _settings(value, f"{prefix}{key}.")
        else:
            settings[prefix + key] = value
    return settings
