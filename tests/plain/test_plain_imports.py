"""The plain BERT stands alone: nine files that import nothing of bertbook."""

import ast
import sys
from pathlib import Path

PLAIN = Path(__file__).resolve().parents[2] / "bertbook" / "plain"
FILES = (
    "tokenizer", "vocabulary", "embeddings", "attention", "block", "bert",
    "weights", "pretraining", "tasks",
)  # fmt: skip
ALLOWED = {"keras", "numpy", "safetensors"} | sys.stdlib_module_names


def imported(path):
    """Yields (level, module) of the imports of a file, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or ""


def test_there_are_nine_files():
    stems = {path.stem for path in PLAIN.glob("*.py")} - {"__init__"}
    assert stems == set(FILES)


def test_a_file_imports_keras_numpy_safetensors_and_the_files_before_it():
    for number, name in enumerate(FILES):
        found = list(imported(PLAIN / f"{name}.py"))
        assert found, name
        for level, module in found:
            if level:
                assert level == 1, (name, module)
                assert module in FILES[:number], (name, module)
            else:
                assert module.split(".")[0] in ALLOWED, (name, module)


def test_a_definition_can_be_written_in_one_sitting():
    for name in FILES:
        tree = ast.parse((PLAIN / f"{name}.py").read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                first = node.body[0]
                words = ast.get_docstring(node)
                lines = first.end_lineno - first.lineno + 1 if words else 0
                size = node.end_lineno - node.lineno + 1 - lines
                assert size <= 25, f"{name}.{node.name}: {size} lines"
