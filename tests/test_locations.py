"""Names to folders, without network."""

import sys
from types import SimpleNamespace

import pytest

from bertbook import locations
from bertbook.locations import (
    HUB_FILES,
    data_folder,
    find_folder,
    shelf,
    shipped_models,
)

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

    def snapshot_download(repository, allow_patterns):
        asked.append((repository, allow_patterns))
        return str(tmp_path)

    library = SimpleNamespace(snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", library)
    assert find_folder("hf://google-bert/bert-base-uncased") == tmp_path
    assert asked == [("google-bert/bert-base-uncased", list(HUB_FILES))]
    # Nothing that could be executed, and no second copy of the weights.
    assert not any(name.endswith((".py", ".bin", ".pt")) for name in HUB_FILES)


# Error.


def test_the_hub_without_its_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match=r"pip install huggingface_hub"):
        find_folder("hf://google-bert/bert-base-uncased")


@pytest.mark.parametrize(
    "name",
    ["", "no/such/folder", "~nobody-of-this-name/x", "a\0b", "bert", None, 5],
)
def test_a_name_that_stands_for_nothing(name):
    with pytest.raises(FileNotFoundError) as caught:
        find_folder(name)
    message = str(caught.value)
    assert message.startswith('`name_or_dir` must be a shipped name ("mini")')
    assert '"hf://org/name", such as "hf://google-bert/' in message
    assert "Shipped names: en-es, mini" in message
    assert message.endswith(f"Received: {str(name)!r}.")


def test_a_file_is_no_folder():
    file = data_folder() / "README.md"
    with pytest.raises(FileNotFoundError, match="a folder, not a file"):
        find_folder(file)


def test_a_preset_has_no_folder():
    with pytest.raises(FileNotFoundError, match="take its `tokenizer`"):
        find_folder("keras://bert_tiny_en_uncased")
