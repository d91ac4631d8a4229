"""`TextVectors`: how a folder of sentence-transformers makes vectors of texts.

The library writes modules.json, whose entries name the folder of each step,
such as 1_Pooling, and in older releases other keys than in newer ones; both
are read.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bertbook.checks import is_integer
from bertbook.config import POOLINGS, BertConfig
from bertbook.files import DataFile, parse_json, read_json, write_json
from bertbook.locations import is_first_module

KEY = "text_vectors"  # in `extra` of the config, which every kind of file keeps
MODULES = "modules.json"
SETTINGS = "sentence_bert_config.json"
PROMPTS = "config_sentence_transformers.json"
POOLING = "1_Pooling/config.json"
# What belongs to an older model where a new one is saved.
SENTENCE_FILES = (MODULES, SETTINGS, PROMPTS, POOLING)
# The keys of the older releases, each true or false.
MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
OLD_MODE = "pooling_mode_"
FIRST = ["Transformer", "Pooling"]
FURTHER = {"Normalize", "Dropout"}  # nothing is dropped outside of training


@dataclass(frozen=True, kw_only=True)
class TextVectors:
    """How the vectors of tokens become one vector of a text.

    Attributes:
        pooling: One of `POOLINGS`.
        normalize: Whether the vector gets length 1.
        max_length: Tokens that a text is cut to; None cuts none.
        lowercase: Whether prompt and text are lower-cased, whatever the
            tokenizer does.
        prompt: What is put before each text.
        other: What else is asked for, and not computed here.
    """

    pooling: str = "mean"
    normalize: bool = False
    max_length: int | None = None
    lowercase: bool = False
    prompt: str = ""
    other: str = ""

    def prepare(self, text: str) -> str:
        """Returns a text as it is tokenized."""
        text = self.prompt + text
        return text.lower() if self.lowercase else text


def stored_vectors(config: BertConfig) -> TextVectors:
    """Returns what a config keeps; without a word of it, the plain mean.

    Raises:
        ValueError: It asks for something that is not computed here.
    """
    stored = TextVectors(**config.extra.get(KEY) or {})
    if stored.other:
        raise ValueError(
            "`pooling` must be given, since the files of this model ask for "
            f"{stored.other}, which is not computed here: pass `pooling=`, one "
            f"of {', '.join(POOLINGS)}. Received: None."
        )
    return stored


def with_vectors(config: BertConfig, folder: Path) -> BertConfig:
    """Returns the config of a folder with what modules.json says, if there.

    Raises:
        ValueError: A file of the library is damaged.
    """
    above = folder.parent
    if is_first_module(above, folder.name):
        folder = above
    if not (folder / MODULES).is_file():
        return config
    vectors = read_vectors(folder, config.max_position_embeddings)
    values = {key: value for key, value in asdict(vectors).items() if value}
    return config.replace(extra={**config.extra, KEY: values})


def read_vectors(folder: Path, positions: int) -> TextVectors:
    """Reads how a folder with a modules.json makes vectors.

    Args:
        folder: The folder.
        positions: Most tokens of a row.

    Raises:
        ValueError: A file is damaged.
    """
    modules = _read_modules(folder / MODULES)
    kinds = [module["type"].rpartition(".")[2] for module in modules]
    first = folder / modules[0]["path"]
    settings, prompts = _read(first / SETTINGS), _read(folder / PROMPTS)
    prompt = _default_prompt(prompts, folder / PROMPTS)
    pooling, others = "mean", [f"the modules {', '.join(kinds)}"]
    if kinds[:2] == FIRST and {*kinds[2:]} <= FURTHER:
        pooling, others = _read_pooling(folder, modules[1]["path"], prompt)
    others += [
        f"`{key}` {json.dumps(values[key])}"
        for values, key in (
            (settings, "processing_kwargs"),
            (prompts, "truncate_dim"),
        )
        if values.get(key)
    ]
    return TextVectors(
        pooling=pooling,
        normalize="Normalize" in kinds,
        max_length=_longest(first, settings, positions),
        lowercase=settings.get("do_lower_case") is True,
        prompt=prompt,
        other="; ".join(others),
    )


def _read_pooling(
    folder: Path, name: str, prompt: str
) -> tuple[str, list[str]]:
    """Returns the mode of pooling, and what is asked for but not computed.

    Args:
        folder: The folder of the model.
        name: Its sub-folder with the settings of pooling.
        prompt: What is put before each text.
    """
    path = folder / name / "config.json"
    settings = _read(path)
    modes = _modes(settings, path)
    others = []
    if not path.is_file():
        others.append(f"what {name}/config.json says, and that is missing")
    if len(modes) > 1 or modes[0] not in POOLINGS:
        others.append(f"pooling by {' and '.join(modes)}")
    if prompt and settings.get("include_prompt") is False:
        others.append("`include_prompt` false")
    return "mean" if others else modes[0], others


def _read(path: Path) -> dict[str, Any]:
    """Reads a JSON object; a file that is not there says nothing."""
    return read_json(path) if path.is_file() else {}


def _read_modules(path: Path) -> list[dict[str, str]]:
    """Reads the list of modules, each with its type and its folder.

    Raises:
        ValueError: It is something else.
    """
    modules = parse_json(DataFile(path).text(), str(path))
    is_list = isinstance(modules, list) and all(
        isinstance(module, dict)
        and isinstance(module.get("type"), str)
        and isinstance(module.get("path"), str)
        for module in modules
    )
    if not is_list or not modules:
        raise ValueError(
            f"{path} must hold a list of modules with `type` and `path`. "
            f"Received: {json.dumps(modules)[:200]}."
        )
    return modules


def _modes(pooling: Mapping[str, Any], path: Path) -> list[str]:
    """Returns the names of the modes of pooling, as newer releases have them.

    Raises:
        ValueError: `pooling_mode` is no name, and no list of names.
    """
    mode = pooling.get("pooling_mode")
    if mode is None:
        modes = [
            MODES.get(key, key)
            for key, is_used in pooling.items()
            if key.startswith(OLD_MODE) and is_used
        ]
        return modes or ["mean"]
    modes = [mode] if isinstance(mode, str) else mode
    is_list = isinstance(modes, list) and all(
        isinstance(name, str) for name in modes
    )
    if not is_list or not modes:
        raise ValueError(
            f"{path}: `pooling_mode` must be a name, or a list of names. "
            f"Received: {mode!r}."
        )
    return modes


def _default_prompt(prompts: Mapping[str, Any], path: Path) -> str:
    """Returns what the library puts before texts without being asked to.

    Raises:
        ValueError: It is no string.
    """
    name, texts = prompts.get("default_prompt_name"), prompts.get("prompts")
    if name is None or texts is None:
        return ""
    if not isinstance(name, str):
        raise ValueError(
            f"{path}: `default_prompt_name` must be a string. Received: "
            f"{json.dumps(name)[:200]}."
        )
    prompt = texts.get(name) if isinstance(texts, dict) else texts
    if prompt is not None and not isinstance(prompt, str):
        raise ValueError(
            f"{path}: `prompts` must hold a string for each name. Received: "
            f"{json.dumps(texts)[:200]}."
        )
    return prompt or ""


def _longest(folder: Path, settings: Mapping[str, Any], positions: int) -> int:
    """Returns the number of tokens that the library cuts a text to.

    Raises:
        ValueError: `max_seq_length` is no count.
    """
    longest: Any = settings.get("max_seq_length")
    if longest is None:
        tokenizer = _read(folder / "tokenizer_config.json")
        longest = tokenizer.get("model_max_length")
        if not is_integer(longest):
            return positions
    if not is_integer(longest) or longest < 1:
        raise ValueError(
            f"{folder / SETTINGS}: `max_seq_length` must be an integer >= 1. "
            f"Received: {longest!r}."
        )
    return min(int(longest), positions)


def write_vectors(folder: Path, config: BertConfig) -> None:
    """Writes the files from which the library makes the same vectors.

    Nothing is written for a config that says nothing, or asks for what is not
    computed here, whose files are not ours.

    Args:
        folder: One that `files.write_together` yields.
        config: The config of an encoder.
    """
    vectors = TextVectors(**config.extra.get(KEY) or {})
    if not config.extra.get(KEY) or vectors.other:
        return
    kinds = ["Transformer", "Pooling", *["Normalize"] * vectors.normalize]
    modules = [
        {
            "idx": number,
            "name": str(number),
            "path": f"{number}_{kind}" if number else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for number, kind in enumerate(kinds)
    ]
    pooling = {"word_embedding_dimension": config.hidden_size} | {
        key: name == vectors.pooling
        for key, name in MODES.items()
        if name in POOLINGS
    }
    files: dict[str, Any] = {
        MODULES: modules,
        POOLING: pooling,
        SETTINGS: {
            "max_seq_length": vectors.max_length,
            "do_lower_case": vectors.lowercase,
        },
    }
    if vectors.prompt:
        files[PROMPTS] = {
            "prompts": {"default": vectors.prompt},
            "default_prompt_name": "default",
        }
    for name, values in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        write_json(folder / name, values)
