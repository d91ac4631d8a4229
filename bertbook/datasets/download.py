"""Downloads from the official addresses, checked by SHA-256, into a cache.

A file counts only when its checksum is the published one. Nothing half-written
is ever left under its name.

The checksums come from the lists that two libraries keep of what they download:
tensorflow/datasets (`url_checksums/glue.txt` and `squad/checksums.tsv`), and
for QQP, SWAG and WNUT-17 huggingface/datasets (`dataset_infos.json`), which has
those of the other GLUE files too, with the same values.

For the archive of `spa_eng` none is published. The one here is of the file
inside of it, and stands in a public repository that keeps that file by Git LFS
(dax44/AMLM on GitHub, `data/spa-eng/spa.txt`); the size is what the example
"English-to-Spanish translation" of Keras prints. Its text is from
www.manythings.org/anki and tatoeba.org, under CC BY 2.0.
"""

import hashlib
import os
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bertbook.files import DAMAGES

WAITS = (1.0, 4.0)  # seconds before the second and the third try
CHUNK = 1 << 18


@dataclass(frozen=True)
class Download:
    """A file that others publish.

    Attributes:
        url: Its official address.
        sha256: The published checksum.
        size: Its published size, in bytes.
        place: Its path below the cache.
        member: The file inside of it that the checksum is of, where it is an
            archive that has none of its own.
    """

    url: str
    sha256: str
    size: int
    place: str
    member: str | None = None

    def __str__(self) -> str:
        """Returns the name for messages of what the checksum is of."""
        return f"{self.member} in {self.url}" if self.member else self.url


class Progress:
    """Prints how much of a file is there, at each tenth, to standard error.

    `total`, `update`, `reset` and `close` are what pooch asks of a bar, which
    it tells of each chunk that is written: here a transfer is stopped that
    gives more than the published size.
    """

    def __init__(self, title: str, size: int, part: Path | None = None):
        self.title = title
        self.size = size
        self.part = part
        self.total = size  # pooch writes it; a packed answer is shorter
        self.done = 0
        self.shown = -1

    def update(self, count: int) -> None:
        """Counts bytes that came, and prints at each further tenth.

        Raises:
            ValueError: The file that is written is too large.
        """
        self._check_size()
        self.done = min(self.done + count, self.size)
        tenth = 10 * self.done // max(self.size, 1)
        if tenth > self.shown:
            self.shown = tenth
            megabytes = f"{self.size / 1e6:,.1f} MB"
            text = f"\r{self.title}: {tenth}0% of {megabytes}"
            print(text, end="", file=sys.stderr, flush=True)

    def _check_size(self) -> None:
        """Refuses a file that is larger than the published one."""
        received = self.part.stat().st_size if self.part else 0
        if received > self.size:
            raise ValueError(
                f"{self.title} must give {self.size:,} bytes. Received: more, "
                f"{received:,} bytes and no end. They are not kept."
            )

    def reset(self) -> None:
        """Keeps the count: pooch adds the whole of a file when it is there."""

    def close(self) -> None:
        """Ends the line, where one was begun."""
        if self.shown >= 0:
            print(file=sys.stderr, flush=True)
        self.shown = -1


def cache_folder() -> Path:
    """Returns the folder of downloads: the system's cache for this package."""
    import pooch  # late: it prints a warning in Jupyter

    return Path(pooch.os_cache("bertbook")).expanduser() / "datasets"


def fetch(download: Download, folder: Path | None = None) -> Path:
    """Returns the file of a download, brought into the cache where needed.

    A file that is there is used when its checksum is right, and fetched again
    when it is not. A transfer that breaks is tried three times.

    Args:
        download: What to fetch.
        folder: The cache; by default `cache_folder()`.

    Raises:
        ConnectionError: Nothing came, or the transfer broke each time; no part
            of the file is kept.
        ValueError: Another file came than the published one; no part of it is
            kept. One that is larger is not read to its end.
    """
    path = (folder or cache_folder()) / download.place
    if path.is_file() and _digest(path, download.member) == download.sha256:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(suffix=".part", dir=path.parent)
    os.close(handle)
    part = Path(name)
    try:
        _transfer(download, part)
        received = _digest(part, download.member)
        if received != download.sha256:
            raise ValueError(
                f"The SHA-256 of {download} must be {download.sha256}. "
                f"Received: {received}; that file is not kept."
            )
        part.replace(path)  # now the name stands for the whole file
    finally:
        part.unlink(missing_ok=True)
    return path


def _digest(path: Path, member: str | None) -> str:
    """Returns the SHA-256 of a file, or of a file inside of an archive."""
    import pooch

    if member is None:
        return pooch.file_hash(str(path))
    try:
        with zipfile.ZipFile(path) as archive, archive.open(member) as file:
            whole = hashlib.sha256()
            while chunk := file.read(CHUNK):
                whole.update(chunk)
            return whole.hexdigest()
    except KeyError:
        return f"no file {member}"
    except DAMAGES as error:
        return f"a damaged archive ({error})"


def _transfer(download: Download, part: Path) -> None:
    """Writes what an address gives; begins again where the transfer breaks."""
    import pooch
    import requests

    host = urlsplit(download.url).netloc
    title = f"Downloading {Path(download.place).name} from {host}"
    for wait in (*WAITS, None):
        progress = Progress(title, download.size, part)
        get = pooch.HTTPDownloader(progressbar=progress, chunk_size=CHUNK)
        try:
            get(download.url, str(part), None)
            return
        except requests.RequestException as error:
            if wait is None or _is_refusal(error):
                raise ConnectionError(
                    f"{download.url} must give {download.size:,} bytes. "
                    f"Received: {part.stat().st_size:,} bytes, then: {error}. "
                    "They are not kept."
                ) from error
            time.sleep(wait)
        finally:
            progress.close()


def _is_refusal(error: Exception) -> bool:
    """Returns whether a server said no, and will say so again."""
    status = getattr(getattr(error, "response", None), "status_code", 0)
    return 400 <= status < 500


ADDRESSES = {
    "glue": "https://dl.fbaipublicfiles.com/glue/data/",
    "senteval": "https://dl.fbaipublicfiles.com/senteval/senteval_data/",
    "keras": "https://storage.googleapis.com/download.tensorflow.org/data/",
    "squad": "https://rajpurkar.github.io/SQuAD-explorer/dataset/",
    "swag": "https://raw.githubusercontent.com/rowanz/swagaf/master/data/",
    "wnut": "https://raw.githubusercontent.com/leondz/"
    "emerging_entities_17/master/",
}

# Set, split, address, place in the cache, size in bytes, and the SHA-256.
PUBLISHED = """
sst2 every glue SST-2.zip 7439277
    d67e16fb55739c1b32cdce9877596db1c127dc322d93c082281f64057c16deaa
cola every glue CoLA.zip 376971
    f212fcd832b8f7b435fb991f101abf89f96b933ab400603bf198960dfc32cbff
mrpc every senteval MRPC/msr_paraphrase_train.txt 1047044
    60a9b09084528f0673eedee2b69cb941920f0b8cd0eeccefc464a98768457f89
mrpc every glue MRPC/mrpc_dev_ids.tsv 6222
    971d7767d81b997fd9060ade0ec23c4fc31cbb226a55d1bd4a1bac474eb81dc7
rte every glue RTE.zip 697150
    6bf86de103ecd335f3441bd43574d23fef87ecc695977a63b82d5efb206556ee
qnli every glue QNLIv2.zip 10627589
    e634e78627a29adaecd4f955359b22bf5e70f2cbd93b493f2d624138a0c0e5f5
mnli every glue MNLI.zip 312783507
    e7c1d896d26ed6caf700110645df426cc2d8ebf02a5ab743d5a5c68ac1c83633
qqp every glue QQP-clean.zip 41696084
    40e7c862c04eb26ee04b67fd900e76c45c6ba8e6d8fab4f8f1f8072a1a3fbae0
stsb every glue STS-B.zip 802872
    e60a6393de5a8b5b9bac5020a1554b54e3691f9d600b775bd131e613ac179c85
swag train swag swag/train.csv 28243333
    5748b51126ac255c5a6f26e1ba473b51116d6c822aeb25e63ecba282c9d0e610
swag dev swag swag/val.csv 7893588
    c0497b2cd7f3e6b7df995524b1853f62285d60d110d659b19545ca80b2903234
squad train squad squad/train-v1.1.json 30288272
    3527663986b8295af4f7fcdff1ba1ff3f72d07d61a20f487cb238a6ef92fd955
squad dev squad squad/dev-v1.1.json 4854279
    95aa6a52d5d6a735563366753ca50492a658031da74f301ac5238b03966972c9
squad_v2 train squad squad/train-v2.0.json 42123633
    68dcfbb971bd3e96d5b46c7177b16c1a4e7d4bdef19fb204502738552dede002
squad_v2 dev squad squad/dev-v2.0.json 4370528
    80a5225e94905956a6446d296ca1093975c4d3b3260f1d6c8f68bc2ab77182d8
wnut17 train wnut wnut17/wnut17train.conll 493781
    731820e13f71af324c6b55a1575ec2ce59fbaa2a0806f8f0400b98d56cd6a7a5
wnut17 dev wnut wnut17/emerging.dev.conll 114749
    e053b752b8155113ca66e7db08af5f2f5f43ab993694e4774f1ec5bad42312d8
wnut17 test wnut wnut17/emerging.test.annotated 192425
    2aa79b764e56ec9264a1b30fdd9b70195bd00ff400b62edd8f399d5f13c178f0
spa_eng every keras spa-eng.zip 2638744
    6ec60e212f812ee3430f7568ea6f33b6fb080e32193c5952e8da0ee8ba45574c
"""

# Archives whose checksum above is that of a file inside.
MEMBERS = {"spa-eng.zip": "spa-eng/spa.txt"}

# What to do where there is no download.
ADVICE = {
    "conll2003": (
        "Its text, the Reuters corpus RCV1, may not be passed on: apply for "
        "it to NIST, https://trec.nist.gov/data/reuters/reuters.html, and "
        "build the files as https://www.clips.uantwerpen.be/conll2003/ner/ "
        "says."
    ),
}


def downloads_of(name: str, split: str) -> list[Download]:
    """Returns the files that a split of a set is read from.

    There are none for a set without a lawful public address.
    """
    words = PUBLISHED.split()
    rows = [words[start : start + 6] for start in range(0, len(words), 6)]
    return [
        Download(
            url=ADDRESSES[address] + place.rpartition("/")[2],
            sha256=sha256,
            size=int(size),
            place=place,
            member=MEMBERS.get(place),
        )
        for owner, part, address, place, size, sha256 in rows
        if owner == name and part in (split, "every")
    ]
