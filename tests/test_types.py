"""What a checker of types says about programs that use the package."""

import ast
import inspect
from pathlib import Path

import pytest

import bertbook as bb
from bertbook.runtime import keras

mypy = pytest.importorskip("mypy.api")
PROGRAM = Path(__file__).parent / "typing" / "program.py"
STUB = Path(bb.__file__).with_suffix(".pyi")
# What stands in the program, and what a user might write by mistake.
TYPOS = [
    ("bb.finetune(", "bb.fine_tune("),
    ("epochs=1", "epoch=1"),
    ('class_weight="balanced"', 'class_weight="balance"'),
    ("metrics=[errors]", "metrics=[5]"),
    ("all_scores=True", "scores=True"),
    ('predict_texts(["Fine."]', "predict_texts([1]"),
    ("learning_rate=1e-3", 'learning_rate="1e-3"'),
    ("model.predict_texts(", "model.predict_text("),
    ("frozen_layers=2", "freeze_layers=2"),
    ("num_labels=2", 'num_labels="2"'),
    ('pooling="mean"', 'pooling="average"'),
    ("encoding.tokens", "encoding.token"),
    ("config.num_hidden_layers", "config.num_layers"),
    ("batch_size=8, dtype", "batchsize=8, dtype"),
    ("model.save_pretrained(", "model.save_pretrain("),
    ("bb.PretrainingRecipe", "bb.PretrainRecipe"),
    ("attention_path(encoder).why", "attention_path(encoder).reason"),
    ("viewer.to_html()", "viewer.as_html()"),
    ("model.save_adapter(", "model.save_adapters("),
    ("hidden_dropout_prob=0.2", "hidden_dropout=0.2"),
    ("model.losses", "model.loses"),
    ("report.save(", "report.store("),
    ('report["accuracy"]', "report.accuracy"),
]
# Names of `keras.Model` that nobody needs who only uses a model.
LEFT_OUT = {
    "add_metric",
    "add_variable",
    "compiled_loss",
    "compiled_metrics",
    "compute_loss_and_updates",  # of JAX, as is jax_state_sync
    "compute_mask",
    "distribute_reduction_method",
    "get_quantization_layer_structure",
    "input",
    "input_dtype",
    "jax_state_sync",
    "load_own_variables",
    "output",
    "quantized_build",
    "quantized_call",
    "rematerialized_call",
    "save_own_variables",
}


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What mypy says in its strictest form of the program and each typo."""
    folder = tmp_path_factory.mktemp("mypy")
    text = PROGRAM.read_text("utf-8")
    programs = {"correct": text}
    for number, (right, wrong) in enumerate(TYPOS):
        assert right in text
        programs[f"typo_{number}"] = text.replace(right, wrong, 1)
    paths = {name: folder / f"{name}.py" for name in programs}
    for name, path in paths.items():
        path.write_text(programs[name], encoding="utf-8")
    options = ["--strict", "--config-file=", f"--cache-dir={folder / 'cache'}"]
    lines, problems, status = mypy.run([*options, *map(str, paths.values())])
    assert not problems
    assert status == 1
    errors = [line for line in lines.splitlines() if ": error: " in line]
    found = {
        name: [line for line in errors if f"{name}.py:" in line]
        for name in paths
    }
    assert sum(map(len, found.values())) == len(errors)  # none elsewhere
    return found


def test_a_correct_program_passes(said):
    assert said["correct"] == []


def test_a_typo_is_one_error(said):
    counts = {
        wrong: len(said[f"typo_{number}"])
        for number, (_, wrong) in enumerate(TYPOS)
    }
    assert counts == dict.fromkeys(counts, 1), said


def test_the_stub_names_what_the_package_offers():
    stub = STUB.read_text("utf-8")
    for name in set(bb.__all__) - {"__version__"}:
        forms = f"class {name}(", f"def {name}(", f" as {name}\n"
        assert any(form in stub for form in forms), name


def test_the_stub_has_what_keras_gives_a_model():
    (model,) = (
        node
        for node in ast.parse(STUB.read_text("utf-8")).body
        if getattr(node, "name", "") == "_Model"
    )
    known = {
        node.target.id if isinstance(node, ast.AnnAssign) else node.name
        for node in model.body
        if isinstance(node, ast.AnnAssign | ast.FunctionDef)
    }
    public = {name for name in dir(keras.Model) if not name.startswith("_")}
    assert public - LEFT_OUT <= known


@pytest.mark.parametrize(
    "name", [name for name in bb.__all__ if name.startswith("BertFor")]
)
def test_every_method_of_a_task_model_is_known(name):
    """Of those that a program calls; Keras calls the others."""
    body = ast.parse(STUB.read_text("utf-8")).body
    (known,) = (
        {method.name for method in node.body if hasattr(method, "name")}
        for node in body
        if isinstance(node, ast.ClassDef) and node.name == name
    )
    own = {
        method
        for method, value in vars(getattr(bb, name)).items()
        if not method.startswith("_") and inspect.isfunction(value)
    }
    assert own - {"call", "build", "get_config"} <= known


def definitions(body, owner=bb):
    """Yields functions and methods of the stub, each with its counterpart."""
    for node in body:
        name = getattr(node, "name", "").replace("__call__", "call")
        inside = getattr(owner, name, None)
        if isinstance(node, ast.ClassDef) and inside is not None:
            yield from definitions(node.body, inside)
        elif isinstance(node, ast.FunctionDef) and inside is not None:
            is_property = any(
                getattr(mark, "id", getattr(mark, "attr", ""))
                in ("property", "setter")
                for mark in node.decorator_list
            )
            if not is_property:
                yield node, inside


def test_the_stub_has_the_parameters_of_the_package():
    pairs = list(definitions(ast.parse(STUB.read_text("utf-8")).body))
    assert len(pairs) > 30
    for node, real in pairs:
        parameters = inspect.signature(real).parameters
        names = [p.name for p in parameters.values() if p.kind != p.VAR_KEYWORD]
        stub = [argument.arg for argument in node.args.args]
        offset = 1 if stub[:1] == ["cls"] else 0
        assert stub[offset:] == [n for n in names if n in stub], node.name
        known = {*stub, *(argument.arg for argument in node.args.kwonlyargs)}
        assert set(names) <= known, node.name
        defaults = [ast.unparse(value) for value in node.args.defaults]
        for name, value in zip(stub[::-1], defaults[::-1], strict=False):
            if value != "...":
                default = parameters[name].default
                assert ast.literal_eval(value) == default, (node.name, name)
