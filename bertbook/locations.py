"""Names to folders: shipped models, local ones, the Hub, KerasHub presets."""

import contextlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

from bertbook.files import (
    DataFile,
    check_no_pointer,
    files_named,
    folder_to_read,
    locked,
    parse_json,
    read_json,
)

FORMS = (
    'a shipped name ("mini"), a folder in the Hugging Face layout '
    "(config.json, model.safetensors), a folder in Google's layout "
    "(bert_config.json, bert_model.ckpt.*), a KerasHub preset folder, "
    '"hf://org/name", such as "hf://google-bert/bert-base-uncased", with '
    '"@revision" after it for one revision, or "keras://preset"'
)

WEIGHTS = "model.safetensors"
SHARD = "model-{:05d}-of-{:05d}.safetensors"
INDEX = "model.safetensors.index.json"
# The weights of a model, and no file of a user beside them.
WEIGHT_FILES = (WEIGHTS, SHARD, INDEX)

ADAPTERS = "adapter_config.json"  # what PEFT writes beside adapters

# What a folder on the Hub may hold that we read.
HUB_FILES = (
    "config.json",
    WEIGHTS,
    "model-*.safetensors",
    INDEX,
    "vocab.txt",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    # What sentence-transformers makes one vector of a text by.
    "modules.json",
    "*_Pooling/config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    # What says that a folder holds adapters alone.
    ADAPTERS,
    # Where older releases of sentence-transformers keep the model.
    "*_Transformer/config.json",
    "*_Transformer/model.safetensors",
    "*_Transformer/vocab.txt",
    "*_Transformer/tokenizer*.json",
    "*_Transformer/special_tokens_map.json",
    "*_Transformer/added_tokens.json",
    # The second vocabulary of an encoder-decoder.
    "target/vocab.txt",
    "target/tokenizer.json",
    "target/tokenizer_config.json",
)


def data_folder() -> Path:
    """Returns the folder of what ships: in the wheel, else in the checkout.

    Raises:
        FileNotFoundError: Neither is there.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "_data", package.parent / "data"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(
        "The data that ships with bertbook is missing from this installation."
    )


def shipped_models() -> list[str]:
    """Returns the names of the models and vocabularies that ship."""
    models = data_folder() / "models"
    return sorted(path.name for path in models.glob("*") if path.is_dir())


def shelf() -> list[Path]:
    """Returns the files of the shelf of documents that ships, sorted.

    Each file is one document, one paragraph a line.
    """
    return sorted((data_folder() / "samples" / "shelf").glob("*.txt"))


def holds_model(folder: Path) -> bool:
    """Returns whether a folder holds weights, or a part of them."""
    return any(files_named(folder, name) for name in WEIGHT_FILES)


def find_folder(name_or_dir: str | Path) -> Path:
    """Returns where to read what a name stands for.

    Args:
        name_or_dir: A shipped name, a folder, or "hf://org/name", which is
            downloaded into the cache of huggingface_hub; "@" and a branch, a
            tag or a commit may follow.

    Returns:
        The folder; where a save there was interrupted, what
        `files.folder_to_read` says.

    Raises:
        FileNotFoundError: It is none of them; the message lists the forms. A
            preset of KerasHub has no folder.
        PermissionError: The Hub asks for a login, or to accept terms first.
        ConnectionError: The Hub does not answer, and nothing of it is cached.
        ValueError: `files.folder_to_read` raises it, or a file there is only
            a pointer of Git LFS.
        ImportError: A "hf://" name without huggingface_hub.
    """
    folder = folder_to_read(named_folder(name_or_dir))
    if not (folder / "config.json").is_file():
        inner = [x for x in folder.glob("*Transformer") if x.is_dir()]
        if len(inner) == 1 and is_first_module(folder, inner[0].name):
            folder = inner[0]
    for path in sorted(folder.iterdir()):
        with contextlib.suppress(OSError):  # whoever needs it will say so
            if path.is_file():
                check_no_pointer(path)
    return folder


def find_model(name_or_dir: str | Path) -> Path:
    """Returns the folder of a model, as `find_folder` does.

    Raises:
        FileNotFoundError: As there; or the folder holds adapters alone.
        OSError: As there, of the other kinds.
        ValueError: As there.
        ImportError: As there.
    """
    folder = find_folder(name_or_dir)
    path = folder / ADAPTERS
    if path.is_file() and not holds_model(folder):
        base = read_json(path).get("base_model_name_or_path")
        raise FileNotFoundError(
            f"{folder} holds adapters of PEFT for {base}, not a model. PEFT "
            "makes one of both: `AutoPeftModelForSequenceClassification."
            f"from_pretrained({str(folder)!r}).merge_and_unload()."
            "save_pretrained('merged')`, or the class of its task."
        )
    return folder


def named_folder(name_or_dir: str | Path) -> Path:
    """Returns the folder that a name stands for.

    Args:
        name_or_dir: As in `find_folder`.

    Raises:
        FileNotFoundError: As in `find_folder`.
        OSError: As in `find_folder`, of the other kinds.
        ImportError: As in `find_folder`.
    """
    name = str(name_or_dir)
    try:
        name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise FileNotFoundError(
            "`name_or_dir` must be a name in UTF-8. Received: "
            f"{name.encode('utf-8', 'backslashreplace')!r}."
        ) from error
    if name.startswith("hf://"):
        return _download(name.removeprefix("hf://"))
    if name.startswith("keras://"):
        raise FileNotFoundError(
            f"{name!r} is a preset, not a folder: load it as a model, with "
            "`BertEncoder.from_pretrained`, and take its `tokenizer`."
        )
    folder = Path(os.path.expanduser(name))
    if name in shipped_models():
        if folder.is_dir():
            warnings.warn(
                f"{name!r} is the model that ships; for the folder of that "
                f"name write './{name}'.",
                stacklevel=3,
            )
        return data_folder() / "models" / name
    if name and folder.is_dir():
        return folder
    if name and folder.exists():
        advice = ""
        if folder.suffix == ".keras":
            advice = (
                " In Python `keras.saving.load_model` opens it, after its "
                "class is imported from bertbook."
            )
        raise FileNotFoundError(
            "`name_or_dir` must be a folder, not a file. "
            f"Received: {name!r}.{advice}"
        )
    if {"/", os.sep} & set(name) or name.startswith((".", "~")):
        raise FileNotFoundError(
            f"`name_or_dir` names a folder that is not there: {name!r}."
            ' For a model of the Hub write "hf://org/name".'
        )
    names = ", ".join(shipped_models()) or "none in this wheel, the small one"
    raise FileNotFoundError(
        f"`name_or_dir` must be {FORMS}. Shipped names: {names}. Received: "
        f"{name!r}."
    )


def is_first_module(folder: Path, name: str) -> bool:
    """Returns whether sentence-transformers keeps a model in a sub-folder.

    Older releases do, in `0_Transformer`; modules.json, beside it, says so.
    """
    path = folder / "modules.json"
    if not path.is_file():
        return False
    try:
        modules = parse_json(DataFile(path).text(), str(path))
    except ValueError:  # whoever needs the file will say so
        return False
    first = modules[0] if isinstance(modules, list) and modules else None
    return isinstance(first, dict) and first.get("path") == name


@contextlib.contextmanager
def reading(name_or_dir: object) -> Iterator[None]:
    """Keeps the files of a folder together while they are read.

    Args:
        name_or_dir: As in `find_folder`; what is no folder is not kept.
    """
    folder = None
    if isinstance(name_or_dir, str | Path) and str(name_or_dir):
        folder = Path(os.path.expanduser(name_or_dir))
    if folder is None or not _is_folder(folder):
        yield
        return
    with locked(folder, for_reading=True):
        yield


def _is_folder(path: Path) -> bool:
    """Returns whether a path is a folder's; a name that is none is not."""
    try:
        return path.is_dir()
    except ValueError:  # a name with a null character, on older Pythons
        return False


def at_revision(name_or_dir: str | Path, revision: str | None) -> str | Path:
    """Returns the name of one revision of a model.

    Args:
        name_or_dir: As in `find_folder`.
        revision: A branch, a tag or a commit; None leaves the name as it is.

    Raises:
        ValueError: The name is none of the Hub, or has a revision already.
    """
    if revision is None:
        return name_or_dir
    name = str(name_or_dir)
    if not name.startswith("hf://") or "@" in name:
        raise ValueError(
            '`revision` belongs to a name such as "hf://org/name". Received: '
            f"{revision!r} with {name!r}."
        )
    return f"{name}@{revision}"


def _download(name: str) -> Path:
    """Brings the files of a model from the Hub into the library's cache.

    Args:
        name: "org/name", or "org/name@revision".
    """
    try:
        import huggingface_hub
    except ImportError as error:
        raise ImportError(
            'A name that starts with "hf://" needs huggingface_hub: '
            "`pip install huggingface_hub`."
        ) from error
    repository, _, revision = name.partition("@")
    try:
        return Path(
            huggingface_hub.snapshot_download(
                repository,
                revision=revision or None,
                allow_patterns=list(HUB_FILES),
            )
        )
    except Exception as error:
        if isinstance(error, OSError) and error.errno:  # a full disk
            raise
        raise _explain(error, repository, revision) from error


def _explain(error: Exception, repository: str, revision: str) -> Exception:
    """Returns the error that says what to do where the Hub gives nothing."""
    from huggingface_hub import errors

    name = f"hf://{repository}"
    if isinstance(error, errors.HFValidationError):
        return FileNotFoundError(
            'A name of the Hub must have the form "hf://org/name". Received: '
            f"{name!r}."
        )
    if isinstance(error, errors.GatedRepoError):
        return PermissionError(
            f"{name} is given to those who accept its terms: do so on its "
            "page, then log in with `hf auth login`."
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return FileNotFoundError(
            f"The Hub knows no {name}, or shows it to its owner only: look "
            "at the spelling, or log in with `hf auth login`."
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return FileNotFoundError(f"{name} has no revision {revision!r}.")
    why = (str(error).strip() or type(error).__name__).splitlines()[0]
    return ConnectionError(
        f"{name} is not in the cache, and the Hub did not give it ({why}). "
        f"Where there is a network `hf download {repository} --local-dir "
        "FOLDER` brings it; the name of the folder then stands for it."
    )
