"""A disk that is full, as a process sees it."""

import resource
import signal
from contextlib import contextmanager


@contextmanager
def largest_file(size):
    """Lets no file grow beyond a number of bytes: writing raises OSError."""
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
