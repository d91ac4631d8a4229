"""The names of others in docs/site/moving.md are names that they have."""

import ast
import importlib
import re

import pytest

import book

PAGE = book.ROOT / "docs" / "site" / "moving.md"
ROW = re.compile(r"^\|(.*)\|$", re.MULTILINE)
# The class behind a variable, so that its methods can be looked up.
VARIABLES = {
    "transformers": {
        "model": "GPT2LMHeadModel",
        "tokenizer": "PreTrainedTokenizerFast",
    },
    "keras_hub": {
        "backbone": "BertBackbone",
        "classifier": "BertTextClassifier",
        "gpt2": "GPT2CausalLM",
        "tokenizer": "BertTokenizer",
    },
}
# Of `peft` and sentence-transformers, which may be missing.
ELSEWHERE = {
    "LoraConfig", "PeftModel", "SentenceTransformer", "get_peft_model",
    "merge_and_unload", "print_trainable_parameters",
}  # fmt: skip


def codes(column):
    """Returns the code in one column of the tables."""
    for match in ROW.finditer(PAGE.read_text("utf-8")):
        code = re.fullmatch(r"`(.+)`", match[1].split("|")[column].strip())
        if code and not code[1].startswith(("torchrun", "optimum-cli")):
            yield code[1]


def missing(code, library):
    """Returns the classes and methods in code that a library lacks."""
    names = importlib.import_module(library)
    models = names.models if library == "keras_hub" else names
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Name) and node.id[0].isupper():
            if not hasattr(models, node.id):
                found.append(node.id)
        elif isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            if owner.startswith(library):
                part = names
                for name in owner.split(".")[1:]:
                    part = getattr(part, name)
                if not hasattr(part, node.attr):
                    found.append(f"{owner}.{node.attr}")
            elif owner in VARIABLES[library]:
                kind = getattr(models, VARIABLES[library][owner])
                if not hasattr(kind, node.attr):
                    found.append(f"{owner}.{node.attr}")
    return [name for name in found if name.split(".")[-1] not in ELSEWHERE]


@pytest.mark.parametrize(
    ("library", "column"), [("transformers", 0), ("keras_hub", 1)]
)
def test_every_name_is_there(library, column):
    pytest.importorskip(library)
    found = list(codes(column))
    assert len(found) > 25
    assert [name for code in found for name in missing(code, library)] == []


def test_a_name_that_is_gone_is_seen():
    pytest.importorskip("keras_hub")
    assert missing("BertReader.from_preset(preset)", "keras_hub")
    assert missing("backbone.nothing(8)", "keras_hub")
    assert missing("keras_hub.samplers.Nothing()", "keras_hub")
