"""The command `info`: what runs here, and what ships."""

import json
import re
from pathlib import Path
from typing import Any

from bertbook import locations, runtime
from bertbook.cli.parsing import add_command

LICENSE = re.compile(r"^License: (.+?)(?:[,;]|\.\s)", re.MULTILINE)


def add_commands(commands) -> None:
    """Adds the command to a parser."""
    parser = add_command(
        commands,
        "info",
        "print versions, device, precision, and the models that ship",
        print_info,
    )
    parser.set_defaults(prints=True)
    parser.add_argument(
        "--json", action="store_true", help="print it as JSON, for a program"
    )


def print_info(options) -> None:
    """Prints versions, backend, device and what ships."""
    facts = runtime.describe()
    models = [describe_model(name) for name in locations.shipped_models()]
    if options.json:
        print(json.dumps({**facts, "models": models}, indent=2))
        return
    for name, value in facts.items():
        print(f"{name}: {value}")
    print("shipped models:")
    for model in models:
        print(
            f"  {model['name']}: {model['parameters']:,} parameters, "
            f"{model['megabytes']:.1f} MB, {model['license']}"
        )


def describe_model(name: str) -> dict[str, Any]:
    """Returns the size and the license of a model that ships.

    Args:
        name: Its name.

    Returns:
        `name`; `parameters`, stored numbers; `megabytes`, millions of bytes of
        all files; `license`, as its card has it.
    """
    folder = locations.data_folder() / "models" / name
    files = [path for path in folder.rglob("*") if path.is_file()]
    card = (folder / "README.md").read_text(encoding="utf-8")
    found = LICENSE.search(card)
    return {
        "name": name,
        "parameters": count_parameters(folder),
        "megabytes": sum(path.stat().st_size for path in files) / 1e6,
        "license": found[1] if found else "see its card",
    }


def count_parameters(folder: Path) -> int:
    """Returns how many numbers the weights of a folder are, read from heads."""
    from safetensors import safe_open

    total = 0
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "numpy") as file:
            for tensor in file.keys():  # noqa: SIM118 - it is no dict
                size = 1
                for length in file.get_slice(tensor).get_shape():
                    size *= length
                total += size
    return total
