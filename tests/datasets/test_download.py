"""Downloads, from a server on this machine."""

import contextlib
import hashlib
import io
import threading
import tracemalloc
import zipfile
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pooch
import pytest

from bertbook.datasets import download as downloads
from bertbook.datasets.download import Download, Progress, cache_folder, fetch

CONTENT = bytes(range(256)) * 4_001  # more than one chunk
assert len(CONTENT) > 2 * downloads.CHUNK
TEXT = b"one\tuno\n" * 997


class Server(ThreadingHTTPServer):
    """Answers each request with the next of `answers`; the last one stays."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = ["whole"]
        self.asked = []
        self.sent = 0

    def url(self, name):
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.asked.append(self.path)
        many = len(server.answers) > 1
        answer = server.answers.pop(0) if many else server.answers[0]
        body = CONTENT[::-1] if answer == "other" else CONTENT
        if isinstance(answer, int):
            self.send_error(answer)
            return
        self.send_response(200)
        if answer == "packed":
            body = zlib.compress(body)
            self.send_header("Content-Encoding", "deflate")
        if answer == "endless":
            self.end_headers()
            with contextlib.suppress(OSError):  # the other side hangs up
                for _ in range(300):
                    self.wfile.write(bytes(1 << 20))
                    self.server.sent += 1 << 20
            return
        if answer == "chunks":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"%x\r\n" % len(body) + body[:999_000])
            return  # the rest never comes
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: -(2**17)] if answer == "broken" else body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(downloads, "WAITS", (0.0, 0.0))
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def download(server, content=CONTENT):
    return Download(
        url=server.url("a.zip"),
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
        place="set/a.zip",
    )


def zipped(level, text=None, name="set/a.txt"):
    """An archive; the same file may be packed in more than one way."""
    text = TEXT if text is None else text
    content = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if level else zipfile.ZIP_STORED
    with zipfile.ZipFile(content, "w", method, compresslevel=level) as archive:
        archive.writestr(name, text)
    return content.getvalue()


def of_member(server, content):
    """A download whose checksum is that of the file inside."""
    sha256 = hashlib.sha256(TEXT).hexdigest()
    url = server.url("a.zip")
    return Download(url, sha256, len(content), "set/a.zip", "set/a.txt")


def names(folder):
    return sorted(path.name for path in (folder / "set").iterdir())


# Definition.


@pytest.mark.parametrize("answer", ["whole", "packed"])
def test_a_file_is_fetched_once(answer, server, tmp_path, capsys):
    server.answers = [answer]
    path = fetch(download(server), tmp_path)
    assert path == tmp_path / "set" / "a.zip"
    assert path.read_bytes() == CONTENT
    assert names(tmp_path) == ["a.zip"]
    printed = capsys.readouterr()
    assert printed.out == ""
    first, *_, last = printed.err.strip().split("\r")
    host = f"127.0.0.1:{server.server_port}"
    assert first == f"Downloading a.zip from {host}: 20% of 1.0 MB"
    assert last == f"Downloading a.zip from {host}: 100% of 1.0 MB"
    assert printed.err.endswith("%" + " of 1.0 MB\n")
    assert fetch(download(server), tmp_path) == path
    assert server.asked == ["/a.zip"]
    assert capsys.readouterr().err == ""


def test_a_damaged_file_of_the_cache_is_fetched_again(server, tmp_path):
    path = fetch(download(server), tmp_path)
    path.write_bytes(CONTENT[:-1])
    assert fetch(download(server), tmp_path).read_bytes() == CONTENT
    assert len(server.asked) == 2


def test_the_cache_is_that_of_the_system(server, tmp_path, monkeypatch):
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / name)
    assert cache_folder() == tmp_path / "bertbook" / "datasets"
    assert fetch(download(server)) == cache_folder() / "set" / "a.zip"


@pytest.mark.parametrize(
    "answers",
    [
        ["broken", "whole"],
        ["broken", "broken", "whole"],
        ["chunks", "whole"],
        [503, 500, "whole"],
    ],
)
def test_a_broken_transfer_is_tried_again(answers, server, tmp_path, capsys):
    server.answers = list(answers)
    assert fetch(download(server), tmp_path).read_bytes() == CONTENT
    assert names(tmp_path) == ["a.zip"]
    assert len(server.asked) == len(answers)
    assert "100% of 1.0 MB\n" in capsys.readouterr().err


def test_fetch_waits_between_tries(server, tmp_path, monkeypatch):
    waited = []
    monkeypatch.setattr(downloads, "WAITS", (0.5, 2.0))
    monkeypatch.setattr(downloads.time, "sleep", waited.append)
    server.answers = [500, 500, "whole"]
    fetch(download(server), tmp_path)
    assert waited == [0.5, 2.0]


@pytest.mark.parametrize("level", [0, 1, 9])
def test_fetch_compares_the_checksum_of_a_member(
    level, server, tmp_path, monkeypatch
):
    content = zipped(level)
    monkeypatch.setitem(globals(), "CONTENT", content)
    wanted = of_member(server, content)
    path = fetch(wanted, tmp_path)
    assert path.read_bytes() == content
    assert fetch(wanted, tmp_path) == path
    assert server.asked == ["/a.zip"]
    path.write_bytes(content[:-1])  # the end of an archive lists its files
    assert fetch(wanted, tmp_path).read_bytes() == content
    assert len(server.asked) == 2


# Error.


@pytest.mark.parametrize(
    ("content", "received"),
    [
        (zipped(1, TEXT[::-1]), hashlib.sha256(TEXT[::-1]).hexdigest()),
        (zipped(1, name="a.txt"), "no file set/a.txt"),
        (zipped(1)[:-1], "a damaged archive"),
        (TEXT, "a damaged archive"),
    ],
    ids=["other", "elsewhere", "damaged", "none"],
)
def test_a_member_with_another_checksum_is_refused_and_not_kept(
    content, received, server, tmp_path, monkeypatch
):
    monkeypatch.setitem(globals(), "CONTENT", content)
    wanted = of_member(server, content)
    with pytest.raises(ValueError, match="The SHA-256 of set/a.txt in") as e:
        fetch(wanted, tmp_path)
    assert f"Received: {received}" in str(e.value)
    assert names(tmp_path) == []


@pytest.mark.parametrize("answer", ["broken", "chunks"])
def test_a_transfer_that_breaks_three_times_is_an_error(
    answer, server, tmp_path
):
    server.answers = [answer]
    message = (
        r"must give 1,024,256 bytes\. Received: [\d,]+ bytes, then: .*not kept"
    )
    with pytest.raises(ConnectionError, match=message):
        fetch(download(server), tmp_path)
    assert len(server.asked) == 3
    assert names(tmp_path) == []


def test_a_refusal_of_the_server_is_not_tried_again(server, tmp_path):
    server.answers = [404]
    with pytest.raises(ConnectionError, match=r"a\.zip must give.*404"):
        fetch(download(server), tmp_path)
    assert len(server.asked) == 1
    assert names(tmp_path) == []


def test_a_server_that_does_not_answer_is_an_error(server, tmp_path):
    wanted = download(server)
    server.server_close()
    with pytest.raises(ConnectionError, match="Received: 0 bytes, then: "):
        fetch(wanted, tmp_path)
    assert names(tmp_path) == []


def test_a_file_with_another_checksum_is_refused_and_not_kept(server, tmp_path):
    server.answers = ["other", "whole"]
    wanted = download(server)
    other = hashlib.sha256(CONTENT[::-1]).hexdigest()
    with pytest.raises(ValueError, match="The SHA-256 of") as caught:
        fetch(wanted, tmp_path)
    for part in (wanted.url, wanted.sha256, f"Received: {other}", "not kept"):
        assert part in str(caught.value)
    assert names(tmp_path) == []
    assert len(server.asked) == 1
    assert fetch(wanted, tmp_path).read_bytes() == CONTENT  # asked for again


@pytest.mark.parametrize("size", [5, len(CONTENT), 3 * downloads.CHUNK + 1])
def test_a_transfer_stops_at_the_published_size(size, server, tmp_path):
    server.answers = ["endless"]
    wanted = Download(server.url("a.zip"), "0" * 64, size, "set/a.zip")
    with pytest.raises(ValueError, match=f"give {size:,} bytes. Received: mo"):
        fetch(wanted, tmp_path)
    assert names(tmp_path) == []
    assert server.sent < 100 << 20, "most of it was never sent"


def test_a_member_is_hashed_as_it_is_unpacked(server, tmp_path, monkeypatch):
    text = bytes(30_000_000)
    content = zipped(9, text)
    monkeypatch.setitem(globals(), "CONTENT", content)
    monkeypatch.setitem(globals(), "TEXT", text)
    wanted = of_member(server, content)
    tracemalloc.start()
    path = fetch(wanted, tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.read_bytes() == content
    assert peak < 8_000_000


def test_a_refused_download_leaves_the_file_in_use(server, tmp_path):
    """A transfer never touches the file of that name before it is checked."""
    path = fetch(download(server), tmp_path)
    later = Download(server.url("a.zip"), "0" * 64, len(CONTENT), "set/a.zip")
    with pytest.raises(ValueError, match="must be 0000"):
        fetch(later, tmp_path)
    assert path.read_bytes() == CONTENT


def test_an_interrupted_transfer_leaves_nothing(server, tmp_path, monkeypatch):
    def interrupt(self, count):
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "update", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetch(download(server), tmp_path)
    assert names(tmp_path) == []


def test_progress_of_unknown_size_divides_by_nothing(capsys):
    progress = Progress("a", 0)
    progress.update(7)
    progress.close()
    progress.close()
    assert capsys.readouterr().err == "\ra: 00% of 0.0 MB\n"
