"""`Watch`: the end of one process ends the others, with one clear error.

Processes that train together wait for each other in every step. A process that
is killed would leave the others waiting, for as long as the network library
likes. So each of them holds a connection to process 0. The operating system
closes it when a process ends; a machine that has lost its power closes nothing,
so a sign of life goes over it every few seconds, too.
"""

import atexit
import contextlib
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

SECONDS_BETWEEN_SIGNS = 5.0
SECONDS_OF_SILENCE = 40.0  # after which a process counts as lost
SECONDS_TO_CONNECT = 60.0
SECONDS_TO_END = 10.0  # for a process that prints its own error
TOKEN_BYTES = 16
FAILED = 1  # the exit status of a process whose peer has ended

ALIVE, DONE, STOPPED = "alive", "done", "stopped"


class Address(NamedTuple):
    """Where process 0 waits for the others, and what they must know.

    Attributes:
        host: The host of process 0.
        port: The port there.
        token: A secret of this run, so that no other program is taken for one
            of its processes.
    """

    host: str
    port: int
    token: str


class Watch:
    """The connections between process 0 and every other process.

    Args:
        index: The number of this process.
        count: How many processes there are.
        end: Called with the text of the error when another process has ended.
    """

    def __init__(self, index: int, count: int, end: Callable[[str], Any]):
        self.index = index
        self.count = count
        self.end = end
        self.links: list[_Link] = []
        self._mutex = threading.Lock()
        self._is_over = False
        self._server: socket.socket | None = None
        self._token = ""

    def open(self, host: str) -> Address:
        """Lets the others connect to this process, 0, on its host."""
        self._server = socket.create_server(("", 0))
        self._server.settimeout(SECONDS_TO_CONNECT)
        self._token = secrets.token_hex(TOKEN_BYTES)
        return Address(host, self._server.getsockname()[1], self._token)

    def accept(self) -> None:
        """Waits until every other process has connected.

        Raises:
            TimeoutError: One has not, within a minute.
        """
        assert self._server is not None
        with self._server as server:
            while len(self.links) < self.count - 1:
                connection, _ = server.accept()
                self._greet(connection)
        self._start()

    def _greet(self, connection: socket.socket) -> None:
        """Takes a connection whose first line is that of one of ours."""
        connection.settimeout(SECONDS_BETWEEN_SIGNS)
        file = connection.makefile("rb")
        with contextlib.suppress(OSError, UnicodeDecodeError):
            token, _, name = file.readline(1_024).decode().partition(" ")
            if token == self._token:
                own = process_name(self.index, self.count)
                connection.sendall(f"{own}\n".encode())
                self.links.append(_Link(connection, file, name.strip()))
                return
        connection.close()

    def connect(self, address: Address) -> None:
        """Connects to process 0.

        Raises:
            OSError: It cannot be reached.
        """
        place = address.host, address.port
        connection = socket.create_connection(place, SECONDS_TO_CONNECT)
        file = connection.makefile("rb")
        name = process_name(self.index, self.count)
        connection.sendall(f"{address.token} {name}\n".encode())
        other = file.readline().decode().strip()
        self.links = [_Link(connection, file, other)]
        self._start()

    def _start(self) -> None:
        """Listens to every connection, and sends signs of life over it."""
        for link in self.links:
            link.connection.settimeout(SECONDS_OF_SILENCE)
            for work in (self._listen, self._send_signs):
                threading.Thread(target=work, args=(link,), daemon=True).start()
        atexit.register(self.leave)

    def _listen(self, link: "_Link") -> None:
        """Reads what another process says, until it has ended."""
        while True:
            word, text = link.read()
            if word == DONE:
                return
            if word == STOPPED:
                self._pass_on(text, link)
                return
            if word != ALIVE:
                how = text or "has ended without a word"
                self._pass_on(
                    f"{link.name} {how}, and this process ends with it. Start "
                    "all of them again with the same command: they go on from "
                    "the last checkpoint.",
                    link,
                )
                return

    def _send_signs(self, link: "_Link") -> None:
        """Sends signs of life until this process leaves."""
        while not link.is_closed.wait(SECONDS_BETWEEN_SIGNS):
            link.send(ALIVE)

    def _pass_on(self, text: str, source: "_Link") -> None:
        """Tells the others what has ended, and ends this process."""
        with self._mutex:
            if self._is_over:
                return
            self._is_over = True
            for link in self.links:
                if link is not source:
                    link.send(STOPPED, text)
            source.wait_for_end()  # it still prints its own error
            self.end(text)

    def stop(self, text: str) -> None:
        """Tells the others that this process fails, and why.

        What another one says later is not heard any more.
        """
        with self._mutex:
            if self._is_over:
                return
            self._is_over = True
            name = process_name(self.index, self.count)
            for link in self.links:
                link.send(
                    STOPPED,
                    f"{name} has stopped, and this process ends with it: "
                    f"{text}",
                )

    def leave(self) -> None:
        """Tells the others that this process is done, or ends it if it failed.

        A failed process does not wait for the others, as JAX would.
        """
        error = getattr(sys, "last_value", None)  # it has been printed
        if error is not None:
            self.stop(str(error) or type(error).__name__)
        with self._mutex:
            is_failing, self._is_over = self._is_over, True
            for link in self.links:
                if not is_failing:
                    link.send(DONE)
                link.is_closed.set()
        if is_failing:
            exit_now(FAILED)


class _Link:
    """One connection: words in lines, both ways."""

    def __init__(self, connection: socket.socket, file: Any, name: str):
        self.connection = connection
        self.file = file
        self.name = name
        self.is_closed = threading.Event()
        self._mutex = threading.Lock()

    def send(self, word: str, text: str = "") -> None:
        """Sends a line; the listener learns where the other has gone."""
        line = " ".join([word, *text.split()]) + "\n"
        with self._mutex, contextlib.suppress(OSError):
            self.connection.sendall(line.encode(errors="replace"))

    def read(self) -> tuple[str, str]:
        """Returns the next word and text; "" and a reason at the end."""
        try:
            line = self.file.readline().decode(errors="replace")
        except TimeoutError:
            return "", f"has not answered for {SECONDS_OF_SILENCE:.0f} seconds"
        except OSError:
            return "", ""
        word, _, text = line.strip().partition(" ")
        return word, text

    def wait_for_end(self) -> None:
        """Waits until the other process has ended, some seconds at most.

        One that goes on after its error, in a notebook, is not waited for.
        """
        last = time.monotonic() + SECONDS_TO_END
        with contextlib.suppress(OSError):
            self.connection.settimeout(SECONDS_BETWEEN_SIGNS)
            while self.file.readline() and time.monotonic() < last:
                pass


def process_name(index: int, count: int) -> str:
    """Returns what errors call this process."""
    return f"process {index} of {count} ({socket.gethostname()}, {os.getpid()})"


def end_process(text: str) -> None:
    """Prints an error in one line and ends this process.

    It ends at once: its main thread may wait for a process that is gone, and
    no exception would reach it there.
    """
    with contextlib.suppress(OSError):
        os.write(2, f"bertbook: {text}\n".encode(errors="replace"))
    exit_now(FAILED)


def exit_now(status: int) -> None:
    """Ends this process, and waits for no other."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)
