"""Names to folders, without network."""

import errno
import functools
import json
import sys
from types import SimpleNamespace

import huggingface_hub
import pytest
from huggingface_hub import errors

from bertbook import locations
from bertbook.locations import (
    HUB_FILES,
    at_revision,
    data_folder,
    find_folder,
    find_model,
    shelf,
    shipped_models,
)

RESPONSE = SimpleNamespace(headers={}, request=None, status_code=404)

# Definition.


def test_what_ships():
    assert (data_folder() / "README.md").is_file()
    assert "mini" in shipped_models()
    assert shipped_models() == sorted(shipped_models())
    for name in shipped_models():
        assert find_folder(name) == data_folder() / "models" / name


def test_the_shelf():
    paths = shelf()
    assert len(paths) >= 40
    assert paths == sorted(paths)
    words = 0
    for path in paths:
        content = path.read_text("utf-8")
        assert all(line.strip() for line in content.splitlines()), path.name
        words += len(content.split())
    assert words >= 40_000


def test_an_installation_reads_the_data_inside_the_package(
    tmp_path, monkeypatch
):
    package = tmp_path / "site-packages" / "bertbook"
    package.mkdir(parents=True)
    monkeypatch.setattr(locations, "__file__", str(package / "locations.py"))
    with pytest.raises(FileNotFoundError, match="data that ships"):
        data_folder()
    beside = package.parent / "data"
    beside.mkdir()
    assert data_folder() == beside
    (package / "_data" / "models" / "dwarf").mkdir(parents=True)
    (package / "_data" / "models" / "note.txt").touch()
    assert data_folder() == package / "_data"
    assert shipped_models() == ["dwarf"]
    assert find_folder("dwarf") == package / "_data" / "models" / "dwarf"
    assert shelf() == []


def test_a_folder_of_ones_own(tmp_path, monkeypatch):
    folder = tmp_path / "my model"
    folder.mkdir()
    assert find_folder(folder) == folder
    assert find_folder(str(folder)) == folder
    monkeypatch.chdir(tmp_path)
    assert find_folder("my model").resolve() == folder.resolve()
    assert find_folder(".").resolve() == tmp_path.resolve()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_folder("~/my model") == folder


def test_a_shipped_name_wins_and_a_path_reaches_the_other(
    tmp_path, monkeypatch
):
    (tmp_path / "mini").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match="'./mini'"):
        assert find_folder("mini") == data_folder() / "models" / "mini"
    assert find_folder("./mini").resolve() == (tmp_path / "mini").resolve()


def test_a_name_of_the_hub_is_downloaded(tmp_path, monkeypatch):
    asked = []

    def snapshot_download(repository, revision, allow_patterns):
        asked.append((repository, revision, allow_patterns))
        return str(tmp_path)

    library = SimpleNamespace(snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", library)
    name = "hf://google-bert/bert-base-uncased"
    for place in (name, f"{name}@refs/pr/7", at_revision(name, "v1")):
        assert find_folder(place) == tmp_path
    assert [revision for _, revision, _ in asked] == [None, "refs/pr/7", "v1"]
    repository, _, patterns = asked[0]
    assert repository == "google-bert/bert-base-uncased"
    assert patterns == list(HUB_FILES)
    # Nothing that could be executed, and no second copy of the weights.
    assert not any(name.endswith((".py", ".bin", ".pt")) for name in HUB_FILES)


# Error.


def test_the_hub_without_its_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match=r"pip install huggingface_hub"):
        find_folder("hf://google-bert/bert-base-uncased")


def _answer(kind):
    """Returns an error of the Hub, as its library raises it."""
    if kind in (OSError, ValueError):
        return kind("no route")
    return kind("404: no such thing", response=RESPONSE)


@pytest.mark.parametrize(
    ("kind", "ours", "message"),
    [
        (errors.RepositoryNotFoundError, FileNotFoundError, "look at the sp"),
        (errors.RevisionNotFoundError, FileNotFoundError, "revision 'v9'"),
        (errors.GatedRepoError, PermissionError, "accept its terms"),
        (errors.HfHubHTTPError, ConnectionError, "hf download org/name"),
        (OSError, ConnectionError, r"did not give it \(no route\)"),
        (ValueError, ConnectionError, r"did not give it \(no route\)"),
    ],
)
def test_each_failure_of_the_hub_says_what_to_do(
    kind, ours, message, monkeypatch
):
    def snapshot_download(*args, **kwargs):
        raise _answer(kind)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    with pytest.raises(ours, match=message):
        find_folder("hf://org/name@v9")


def test_no_network_and_nothing_cached(monkeypatch, tmp_path):
    monkeypatch.setattr(
        huggingface_hub,
        "snapshot_download",
        functools.partial(
            huggingface_hub.snapshot_download,
            cache_dir=tmp_path,
            local_files_only=True,
        ),
    )
    with pytest.raises(ConnectionError, match="is not in the cache"):
        find_folder("hf://org/name")


def test_a_full_disk_is_no_failure_of_the_hub(monkeypatch):
    def snapshot_download(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    with pytest.raises(OSError, match="No space left") as caught:
        find_folder("hf://org/name")
    assert caught.value.errno == errno.ENOSPC


@pytest.mark.parametrize("name", ["hf://", "hf://a/b/c", "hf://a b", "hf://@v"])
def test_a_name_that_the_hub_cannot_have(name):
    with pytest.raises(FileNotFoundError, match='the form "hf://org/name"'):
        find_folder(name)


@pytest.mark.parametrize("name", ["mini", "hf://org/name@v1", "keras://x"])
def test_a_revision_belongs_to_the_hub(name):
    with pytest.raises(ValueError, match="`revision` belongs to a name"):
        at_revision(name, "v1")


def test_a_folder_of_adapters_is_no_model(tmp_path):
    base = {"base_model_name_or_path": "bert-base-uncased"}
    (tmp_path / "adapter_config.json").write_text(json.dumps(base))
    (tmp_path / "adapter_model.safetensors").touch()
    with pytest.raises(FileNotFoundError, match="PEFT for bert-base-uncased"):
        find_model(tmp_path)
    assert find_folder(tmp_path) == tmp_path  # a tokenizer may be there
    (tmp_path / "model.safetensors").touch()
    assert find_model(tmp_path) == tmp_path


@pytest.mark.parametrize(
    "name",
    ["", "a\0b", "bert", None, 5],
)
def test_a_name_that_stands_for_nothing(name):
    with pytest.raises(FileNotFoundError) as caught:
        find_folder(name)
    message = str(caught.value)
    assert message.startswith('`name_or_dir` must be a shipped name ("mini")')
    assert '"hf://org/name", such as "hf://google-bert/' in message
    assert "Shipped names: en-es, mini" in message
    assert message.endswith(f"Received: {str(name)!r}.")


@pytest.mark.parametrize(
    "name", ["no/such/folder", "~nobody-of-this-name/x", "./runs", "/no/such"]
)
def test_a_path_that_leads_nowhere(name):
    """It is most often a run that is not there, or a name of the Hub."""
    with pytest.raises(FileNotFoundError) as caught:
        find_folder(name)
    message = str(caught.value)
    assert message.startswith("`name_or_dir` names a folder that is not there")
    assert message.endswith('For a model of the Hub write "hf://org/name".')


def test_a_file_is_no_folder():
    file = data_folder() / "README.md"
    with pytest.raises(FileNotFoundError, match="a folder, not a file"):
        find_folder(file)


def test_a_preset_has_no_folder():
    with pytest.raises(FileNotFoundError, match="take its `tokenizer`"):
        find_folder("keras://bert_tiny_en_uncased")
