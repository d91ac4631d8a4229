"""A folder of its own for every command."""

import pytest


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Lets no relative name of a test stand for a file of the checkout."""
    monkeypatch.chdir(tmp_path)
