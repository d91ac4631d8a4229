"""Writes data/runs/machine_check.json, with which chapter 93 compares.

    KERAS_BACKEND=tensorflow python tools/book/check_numbers.py

On a CPU, whose float32 products are exact. Then `make checksums`.
"""

import book
from bertbook import runtime
from bertbook.book import machine_check

if __name__ == "__main__":
    if runtime.device_name() != "CPU":
        raise SystemExit("The numbers must be those of a CPU.")
    path = book.ROOT / "data" / "runs" / machine_check.FILE
    machine_check.store_expected(path)
    print(f"kept in {path.relative_to(book.ROOT)}")
