"""A wheel without models and samples, for those who bring data of their own.

`python tools/small_wheel.py [FOLDER]` builds the wheel and writes a copy of it
into the folder, `dist/small` without one, that leaves out `LEFT_OUT`: 72 MB
become less than one. It has the name of the whole one, so that the first cell
of a notebook finds either. A model comes from the Hub then, or from a folder.
"""

import csv
import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = "bertbook/_data/"
LEFT_OUT = "models/", "samples/", "splits/"  # below `DATA`
KEPT = ("samples/help_desk/",)  # what chapter 44 is about


def main():
    """Builds the wheel, and says how large it is."""
    folder = Path(*sys.argv[1:2] or (ROOT / "dist" / "small",))
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as whole:
        command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps"]
        subprocess.run([*command, "-w", whole, str(ROOT)], check=True)
        (path,) = Path(whole).glob("*.whl")
        small = folder / path.name
        write_small(path, small)
    print(f"{small}: {small.stat().st_size / 1e3:,.0f} kB")


def write_small(whole, small):
    """Writes a copy of a wheel without what is left out.

    Args:
        whole: The wheel.
        small: Where the copy goes.
    """
    with (
        zipfile.ZipFile(whole) as source,
        zipfile.ZipFile(small, "w", zipfile.ZIP_DEFLATED) as copy,
    ):
        for member in source.infolist():
            content = source.read(member)
            if member.filename.endswith(".dist-info/RECORD"):
                content = _record_of_kept(content)
            if is_kept(member.filename):
                copy.writestr(member, content, zipfile.ZIP_DEFLATED)


def is_kept(name):
    """Returns whether a file of the wheel is in the small one, too."""
    inside = name.removeprefix(DATA)
    return (
        inside == name
        or inside.startswith(KEPT)
        or not inside.startswith(LEFT_OUT)
    )


def _record_of_kept(content):
    """Returns the list of files of a wheel, of which some are left out."""
    rows = csv.reader(content.decode().splitlines())
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(row for row in rows if is_kept(row[0]))
    return text.getvalue().encode()


if __name__ == "__main__":
    main()
