"""A module imports only from layers below its own, and no backend."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "bertbook"
LAYERS = [
    {"stored_config"},
    {
        "bio",
        "causal_config",
        "config",
        "data_files",
        "dependencies",
        "erratum",
        "listings",
        "locations",
        "merges",
        "cards",
        "puzzles",
        "references",
        "runtime",
        "sentences",
        "seq2seq_config",
        "stages",
        "text_checks",
        "vocabulary",
        "wordpiece",
    },
    {
        "decoder_names",
        "downloads",
        "dropout",
        "input_forms",
        "islands",
        "labels",
        "names",
        "notation",
        "spacing",
        "splits",
        "tensor_files",
    },
    {"layers"},
    {
        "annotations",
        "attention",
        "batching",
        "checkpoints",
        "embeddings",
        "lstm",
        "masking",
        "packing",
        "sources",
        "tables",
        "tokenizer",
        "windows",
    },
    {"phrases", "readers"},
    {
        "catalog",
        "command_texts",
        "corpus",
        "decoder_files",
        "forward_pass",
        "pretrained",
    },
    {"encoder", "examples", "extra_tokens", "datasets"},
    {
        "answer_scores",
        "causal",
        "heads",
        "losses",
        "metrics",
        "prompts",
        "spans",
        "streams",
        "tags",
        "translation_recipe",
        "translation_scores",
    },
    {
        "bitexts",
        "decoder_blocks",
        "generation_checks",
        "models",
        "neighbors",
        "optimization",
        "repeats",
        "rows",
        "steps",
    },
    {"decoder", "feeding", "seq2seq", "sharing", "tasks", "training"},
    {"averages", "beams", "sampling", "text_tasks", "ulmfit", "word_tasks"},
    {"task_models"},
    {
        "attention_errata",
        "block_errata",
        "cloze",
        "decoder_errata",
        "history_errata",
        "position_errata",
        "scores",
        "size_errata",
        "task_runs",
        "token_errata",
        "training_errata",
    },
    {"errata", "pretraining", "finetuning", "generation"},
    {"domains", "lineage", "translation", "relatives", "drawing"},
    {"text_classifier", "translation_vocabularies"},
    {"matrices", "series", "sheets", "translation_runs"},
    {
        "figures",
        "mask_figures",
        "overviews",
        "pair_figures",
        "parity_figures",
        "score_figures",
        "tag_figures",
    },
    {"diagrams"},
    {"viewer_data"},
    {"viewers", "task_commands", "translation_commands"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
ENTRANCES = {"__init__", "__main__"}  # above every layer
# One of these may be missing, so none is imported when a module is.
OPTIONAL = {
    "huggingface_hub",
    "jax",
    "keras_hub",
    "keras_nlp",
    "matplotlib",
    "sacrebleu",
    "scipy",
    "sklearn",
    "tensorflow",
    "tensorflow_text",
    "torch",
    "transformers",
}


def ours(tree):
    """Yields the name of each of our modules that a file imports, anywhere.

    A name that is no module, as in `from bertbook import BertConfig`, is
    yielded too: inside the package it would be a way around the layers.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from below_bertbook(alias.name)
        elif isinstance(node, ast.ImportFrom):
            yield from from_import(node)
        elif isinstance(node, ast.Call):
            yield from called_import(node)


def below_bertbook(dotted):
    package, *rest = dotted.split(".")
    if package == "bertbook":
        yield rest[0] if rest else "the package itself"


def from_import(node):
    """Reads `from bertbook.x import y`, and the same with dots."""
    module = node.module or ""
    if node.level:
        module = f"bertbook.{module}".rstrip(".")
    if module == "bertbook":
        yield from (alias.name for alias in node.names)
    else:
        yield from below_bertbook(module)


def called_import(node):
    """Reads `import_module("bertbook.x")` and `__import__("bertbook.x")`."""
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name in ("import_module", "__import__") and node.args:
        value = getattr(node.args[0], "value", None)
        if isinstance(value, str):
            dotted = f"bertbook{value}" if value.startswith(".") else value
            yield from below_bertbook(dotted)


def faults(name, text):
    """Returns what is wrong with the imports of one module, in words."""
    if name in ENTRANCES:
        return []
    if name not in LEVEL:
        return [f"`{name}` has no layer: add it to LAYERS"]
    found = []
    for other in ours(ast.parse(text)):
        if other not in LEVEL:
            found.append(f"`{name}` imports {other}, which is no module")
        elif LEVEL[other] >= LEVEL[name]:
            found.append(
                f"`{name}` (layer {LEVEL[name]}) imports "
                f"`{other}` (layer {LEVEL[other]})"
            )
    return found


def optional_at_the_top(text):
    """Returns the optional packages that importing a module would import."""
    nodes = [
        node
        for node in top_level(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    names = [
        name.split(".")[0]
        for node in nodes
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
        )
    ]
    return sorted(OPTIONAL.intersection(names))


def top_level(node):
    """Yields the nodes that run when a module is imported."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
            yield from top_level(child)


def modules():
    return sorted(PACKAGE.glob("*.py"))


def test_the_package_has_modules_and_no_folders():
    assert modules(), "bertbook/ holds no module"
    assert list(PACKAGE.glob("*/**/*.py")) == []


def test_no_layer_repeats_a_name():
    assert sum(map(len, LAYERS)) == len(LEVEL)


def test_imports_only_point_down():
    found = []
    for path in modules():
        found += faults(path.stem, path.read_text("utf-8"))
    assert found == []


def test_no_optional_package_is_imported_with_a_module():
    found = [
        f"{path.name} imports {name}"
        for path in modules()
        for name in optional_at_the_top(path.read_text("utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "import bertbook.encoder",
        "import bertbook.encoder as e",
        "import bertbook",
        "from bertbook import encoder",
        "from bertbook import BertEncoder",
        "from bertbook.encoder import BertEncoder",
        "from bertbook.embeddings import Embeddings",
        "from . import encoder",
        "from .encoder import BertEncoder",
        "def late():\n    from bertbook.encoder import BertEncoder",
        "import_module('bertbook.encoder')",
        "importlib.import_module('.encoder', 'bertbook')",
        "try:\n    import bertbook.models\nexcept ImportError:\n    pass",
    ],
)
def test_each_way_up_or_sideways_is_seen(line):
    assert faults("attention", line) != []


@pytest.mark.parametrize(
    "line",
    [
        "from bertbook.config import BertConfig",
        "import keras",
        "from . import config",
    ],
)
def test_the_ways_down_are_free(line):
    assert faults("attention", line) == []


def test_optional_packages_are_seen_at_the_top_only():
    assert optional_at_the_top("try:\n    import jax.numpy\nexcept E: pass")
    assert optional_at_the_top("from tensorflow import keras")
    assert not optional_at_the_top("def f():\n    import jax")
