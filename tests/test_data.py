"""Every file that ships is the one that `data/SHA256SUMS` names."""

import checksums


def test_there_are_files():
    assert checksums.measured(), "data/ holds no file"


def test_the_readme_ships():
    assert "README.md" in checksums.measured()


def test_every_file_has_its_checksum():
    assert checksums.LIST.is_file(), "run `make checksums`"
    listed, measured = checksums.listed(), checksums.measured()
    assert sorted(measured.keys() - listed.keys()) == [], "not in the list"
    assert sorted(listed.keys() - measured.keys()) == [], "no such file"
    changed = [name for name in listed if listed[name] != measured[name]]
    assert changed == [], "changed: if that is right, run `make checksums`"
