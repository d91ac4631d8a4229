"""What greets a visitor on GitHub: forms, workflows, changelog, commands."""

import re

import check_jsonschema
import pytest
import yaml
from click.testing import CliRunner
from packaging.version import Version

import book
import road

GITHUB = book.ROOT / ".github"
FORMS = sorted((GITHUB / "ISSUE_TEMPLATE").glob("[0-9]*.yml"))
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
SCHEMAS = {
    "github-issue-forms": FORMS,
    "github-issue-config": [GITHUB / "ISSUE_TEMPLATE" / "config.yml"],
    "github-workflows": WORKFLOWS,
    "citation-file-format": [book.ROOT / "CITATION.cff"],
}
GUIDES = [
    book.ROOT / name
    for name in ("README.md", "CONTRIBUTING.md", "docs/releasing.md")
]
_MAKE = re.compile(r"\bmake ((?:[a-z][a-z-]*\b(?![=/.]) ?)+)")
_CHAPTER = re.compile(
    r"\[\d\d .*?\]\(notebooks/(\w+)\.ipynb\) \| (.*) \|$", re.MULTILINE
)
_RELEASE = re.compile(r"^## (\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)$", re.MULTILINE)


def refused(schema, paths):
    """Returns what the schema has against the files, or ""."""
    options = ["--builtin-schema", f"vendor.{schema}", *map(str, paths)]
    done = CliRunner().invoke(check_jsonschema.main, options)
    return done.output if done.exit_code else ""


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_keep_to_their_schema(schema):
    assert SCHEMAS[schema], "no such file"
    assert refused(schema, SCHEMAS[schema]) == ""


def test_a_form_without_a_label_is_refused(tmp_path):
    text = FORMS[0].read_text("utf-8")
    path = tmp_path / "form.yml"
    path.write_text(text.replace("      label: ", "      title: "), "utf-8")
    assert "'label' is a required property" in refused(
        "github-issue-forms", [path]
    )


def test_there_is_a_form_for_each_purpose():
    names = [yaml.safe_load(path.read_text("utf-8"))["name"] for path in FORMS]
    wanted = ["A question", "An error in the book", "A bug in the package"]
    assert names == wanted
    guide = (book.ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert all(f'"{name}"' in guide for name in names)


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_asks_each_thing_once(path):
    """GitHub refuses what stands twice in a form; its schema does not."""
    body = yaml.safe_load(path.read_text("utf-8"))["body"]
    asked = [part for part in body if part["type"] != "markdown"]
    ids = [part["id"] for part in asked]
    labels = [part["attributes"]["label"] for part in asked]
    assert len(set(ids)) == len(ids) == len(set(labels))
    assert any(part.get("validations", {}).get("required") for part in asked)


def test_the_readme_lists_every_chapter_with_its_question():
    text = (book.ROOT / "README.md").read_text("utf-8")
    wanted = [
        (one.name, road.question(book.read_twin(one.twin).cells[0].source))
        for one in book.written()
        if not one.is_lab
    ]
    assert len(wanted) > 20
    assert _CHAPTER.findall(text) == wanted


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_limits(path):
    workflow = yaml.safe_load(path.read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] <= 120, name


def test_pages_publishes_what_make_book_writes():
    jobs = yaml.safe_load((GITHUB / "workflows/pages.yml").read_text())["jobs"]
    steps = jobs["build"]["steps"]
    assert [s for s in steps if s.get("run", "").startswith("make book")]
    (folder,) = (
        s["with"]["path"] for s in steps if "path" in s.get("with", {})
    )
    assert folder == "build/site/html"
    assert jobs["deploy"]["permissions"] == {
        "pages": "write",
        "id-token": "write",
    }


def targets():
    """Returns the targets of the Makefile."""
    text = (book.ROOT / "Makefile").read_text("utf-8")
    return set(re.findall(r"^([a-z][a-z-]*):(?!=)", text, re.MULTILINE))


def code_in(text):
    """Returns the shell blocks and the code spans of a page."""
    shell = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return "\n".join(shell + re.findall(r"`([^`]+)`", prose))


@pytest.mark.parametrize("path", [*GUIDES, *WORKFLOWS], ids=lambda p: p.name)
def test_the_commands_that_a_page_names_are_there(path):
    text = path.read_text("utf-8")
    text = code_in(text) if path.suffix == ".md" else text
    named = {name for names in _MAKE.findall(text) for name in names.split()}
    assert named - targets() == set()
    if path in GUIDES or path.name != "weekly.yml":
        assert named


def releases():
    """Returns the versions of the changelog with their dates, newest first."""
    text = (book.ROOT / "CHANGELOG.md").read_text("utf-8")
    return [(Version(v), date) for v, date in _RELEASE.findall(text)]


def test_the_changelog_keeps_its_form():
    text = (book.ROOT / "CHANGELOG.md").read_text("utf-8")
    first, *others = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert first == "Unreleased"
    assert len(others) == len(releases())
    assert releases() == sorted(releases(), reverse=True)
    kinds = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    allowed = "Added Changed Deprecated Removed Fixed Security"
    assert kinds <= set(allowed.split())


def test_the_changelog_knows_the_version():
    """A release has its section; what follows one has a higher version."""
    version, (newest, _) = Version(book.version()), releases()[0]
    if version.is_devrelease:
        assert version > newest
    else:
        assert version == newest
