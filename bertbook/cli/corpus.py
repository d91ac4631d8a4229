"""The command prepare: text files as shards, by one machine or by many."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bertbook.cli.parsing import add_advanced, add_command
from bertbook.pretraining.corpus import (
    SHARD_TOKENS,
    Corpus,
    open_corpus,
    prepare,
)
from bertbook.pretraining.remote_files import is_url


def add_commands(commands: Any) -> None:
    """Adds the command to the parser."""
    parser = add_command(
        commands,
        "prepare",
        "turn text files into the corpus that `bertbook pretrain` reads",
        _prepare_corpus,
    )
    add = parser.add_argument
    add(
        "files",
        nargs="+",
        help="text files, an empty line between documents; with --beam also "
        "URLs",
    )
    add(
        "--out",
        required=True,
        help="folder of the corpus; with --beam also a URL",
    )
    add("--tokenizer", default="mini", help="name, or folder, of a vocabulary")
    add(
        "--held-out",
        type=float,
        default=0.01,
        help="share of the documents that are only evaluated on",
    )
    add("--seed", type=int, default=0, help="seed of the mixing")
    add(
        "--shard-tokens",
        type=int,
        default=SHARD_TOKENS,
        help="tokens a shard, about",
    )
    add_advanced(parser).add_argument(
        "--beam",
        metavar="OPTIONS",
        help="options of Apache Beam, which then prepares the corpus, as one "
        'word: --beam="--runner=DataflowRunner --region=..."; without it this '
        "process does",
    )


def _prepare_corpus(options: Any) -> None:
    """Prepares a corpus here, or by a pipeline."""
    from bertbook.text.tokenizer import Tokenizer

    tokenizer = Tokenizer.from_pretrained(options.tokenizer)
    keywords = {
        "held_out": options.held_out,
        "seed": options.seed,
        "shard_tokens": options.shard_tokens,
    }
    if options.beam is None:
        made = prepare(options.files, tokenizer, options.out, **keywords)
    else:
        from bertbook.pretraining.beam_corpus import prepare_with_beam

        words = shlex.split(options.beam)
        made = prepare_with_beam(
            options.files, tokenizer, options.out, options=words, **keywords
        )
    print(f"written: {options.out}")
    shards = made.record["shards"]
    print(
        f"{made.record['documents']:,} documents, "
        f"{made.record['tokens']:,} tokens, {shards['train']} shards to train "
        f"on and {shards['held_out']} held out"
    )


def find_corpus(words: Sequence[str]) -> Corpus | Sequence[str]:
    """Returns the prepared corpus that a single word names, else the files.

    Args:
        words: What follows `--corpus`: text files, or a folder or a URL.

    Raises:
        FileNotFoundError: The folder or the URL holds no corpus.
        ValueError: `corpus.json` is damaged.
    """
    if len(words) == 1 and (is_url(words[0]) or Path(words[0]).is_dir()):
        return open_corpus(words[0])
    return words
