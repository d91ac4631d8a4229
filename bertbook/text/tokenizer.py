"""`Tokenizer`: texts to ids and back, by the Rust library `tokenizers`.

`wordpiece` is the readable definition; this module gives the same results.

Differences: training picks pairs by how often they occur, as BPE does, because
the Rust trainer does; `merges.learn_merges` shows WordPiece's own score.
A text is cut only when `max_length` is given, at the end that the model's files
name. Rows are padded on the right, whatever they say of `padding_side`: with
positions counted from 0, padding on the left moves a text to other positions,
and gives it other vectors than it has alone. Where both texts of a pair are too
long and the room is odd, Google's code gives the odd place to the first; the
Rust library, and we, to the longer one (to the second where both are equally
long).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers as rust
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from bertbook.checks import (
    check_max_length,
    check_rows,
    check_switch,
    check_text,
    checked_list,
    is_integer,
)
from bertbook.files import (
    check_folder,
    write_json,
    write_text,
    write_together,
)
from bertbook.locations import at_revision, find_folder, reading
from bertbook.text import added_tokens as whole_tokens
from bertbook.text import wordpiece
from bertbook.text.added_tokens import AddedToken
from bertbook.text.reach import check_reach
from bertbook.text.tensor_map import BatchMap
from bertbook.text.tokenizer_files import read_tokenizer
from bertbook.text.vocabulary import (
    SPECIAL_TOKENS,
    limit_letters,
    number_pieces,
    read_vocabulary,
    train_pieces,
)

ENGINES = ("rust", "python")
TOKENIZER_CONFIG = "tokenizer_config.json"
# The files of a tokenizer; those of an older one go where a new one is saved.
TOKENIZER_FILES = (
    "vocab.txt",
    "tokenizer.json",
    TOKENIZER_CONFIG,
    "added_tokens.json",
    "special_tokens_map.json",
)
PADDINGS = ("longest", "max_length")
SIDES = ("right", "left")
# A longer row or a larger batch is a slip, or the number by which other
# libraries say that there is no limit: it would fill the memory with [PAD].
MOST_PADDED = 2**20
MOST_CELLS = 2**30


@dataclass(frozen=True)
class Encoding:
    """One text, or one pair, as the model sees it: lists of equal length.

    Attributes:
        tokens: The pieces.
        input_ids: Their ids.
        token_type_ids: 0 for the tokens of the first text, 1 for those of the
            second.
        attention_mask: 1 for each token, since one text has no padding.
        offsets: Start and end in characters of the raw text, (0, 0) for the
            special tokens that were added.
        word_ids: Which word of its text a token belongs to, from 0 on; None
            for added tokens.
        sequence_ids: Which text it belongs to, 0 or 1; None for added tokens.

    >>> import bertbook as bb
    >>> tokenizer = bb.Tokenizer.from_pretrained("mini")
    >>> encoding = tokenizer.encode("Where?", "At the bank.")
    >>> encoding.tokens
    ['[CLS]', 'where', '?', '[SEP]', 'at', 'the', 'bank', '.', '[SEP]']
    >>> encoding.token_type_ids, encoding.offsets[1]
    ([0, 0, 0, 0, 1, 1, 1, 1, 1], (0, 5))
    """

    tokens: list[str]
    input_ids: list[int]
    token_type_ids: list[int]
    attention_mask: list[int]
    offsets: list[tuple[int, int]]
    word_ids: list[int | None]
    sequence_ids: list[int | None]

    def __len__(self) -> int:
        return len(self.input_ids)


class Tokenizer:
    """Turns texts into ids and ids into texts.

    Args:
        vocabulary: The pieces; the place of a piece is its id.
        lowercase: Whether the model is uncased.
        strip_accents: Whether to drop accents; None means "as `lowercase`".
        split_cjk: Whether each CJK character is a word of its own.
        max_word_length: A longer word, in characters, is [UNK].
        added_tokens: Further pieces that a raw text may hold, kept whole:
            strings, for special tokens, or `AddedToken`s.
        truncation_side: Which end of a text is lost where `max_length` cuts:
            "right", or "left" for models that read the end of a text.
        engine: "rust", or "python" for `wordpiece`: slower, same results.

    Attributes:
        decided_by: After `from_pretrained`: for `lowercase`, `strip_accents`
            and `split_cjk` the file, or the rule, that decided it.

    Raises:
        ValueError: A piece occurs twice in `vocabulary`, a special or added
            token is missing from it, no text reaches most of its pieces, or
            an option has an unknown value.

    Warns:
        UserWarning: No text reaches some of the pieces.

    >>> import bertbook as bb
    >>> tokenizer = bb.Tokenizer.from_pretrained("mini")
    >>> batch = tokenizer(["The bank was shut.", "Fire!"])
    >>> batch["input_ids"].shape
    (2, 7)
    >>> tokenizer.decode(batch["input_ids"][1])
    'fire!'
    """

    def __init__(
        self,
        vocabulary: Sequence[str],
        *,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        split_cjk: bool = True,
        max_word_length: int = wordpiece.HUGGING_FACE_WORD_LIMIT,
        added_tokens: Sequence[str | AddedToken] = (),
        truncation_side: str = "right",
        engine: str = "rust",
    ):
        if not isinstance(engine, str) or engine not in ENGINES:
            raise ValueError(
                f"`engine` must be one of {', '.join(ENGINES)}. "
                f"Received: {engine!r}."
            )
        if not isinstance(truncation_side, str) or truncation_side not in SIDES:
            raise ValueError(
                f"`truncation_side` must be one of {', '.join(SIDES)}. "
                f"Received: {truncation_side!r}."
            )
        check_switch(lowercase, "lowercase")
        check_switch(strip_accents is None or strip_accents, "strip_accents")
        check_switch(split_cjk, "split_cjk")
        limit = wordpiece.MOST_WORD_LENGTH
        if not is_integer(max_word_length) or not 1 <= max_word_length <= limit:
            raise ValueError(
                f"`max_word_length` must be an integer in [1, {limit}], since "
                "the time for a word grows with the cube of its length. "
                f"Received: {max_word_length!r}."
            )
        self.ids = number_pieces(vocabulary)
        self.vocabulary = list(self.ids)
        more = whole_tokens.checked_tokens(added_tokens, self.ids)
        tokens = {t.content: t for t in map(AddedToken, SPECIAL_TOKENS)}
        self.added_tokens = (*(tokens | {t.content: t for t in more}).values(),)
        self.decided_by: dict[str, str] = {}
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.split_cjk = split_cjk
        self.max_word_length = int(max_word_length)
        self.special_tokens = tuple(
            t.content
            for t in self.added_tokens
            if t.special or t.content in SPECIAL_TOKENS
        )
        self.truncation_side = truncation_side
        self.engine = engine
        self.pad_token_id, self.unk_token_id = (
            self.ids["[PAD]"],
            self.ids["[UNK]"],
        )
        self.cls_token_id, self.sep_token_id = (
            self.ids["[CLS]"],
            self.ids["[SEP]"],
        )
        self.mask_token_id = self.ids["[MASK]"]
        self._rust_tokenizers: dict[tuple[int | None, str], rust.Tokenizer] = {}
        rules = lowercase, self._strips_accents, split_cjk
        self._kept_whole = whole_tokens.without_doubles(
            self.added_tokens, *rules
        )
        kept = {t.content for t in self.added_tokens}
        check_reach(self.vocabulary, *rules, self.max_word_length, kept)

    def __repr__(self) -> str:
        case = "uncased" if self.lowercase else "cased"
        return f"Tokenizer({len(self)} pieces, {case}, engine={self.engine!r})"

    def __len__(self) -> int:
        return len(self.vocabulary)

    # Reading, training, writing.

    @classmethod
    def from_vocab(
        cls, path: str | Path, lowercase: bool = True, engine: str = "rust"
    ) -> "Tokenizer":
        """Reads a `vocab.txt`: one piece a line, the line number is the id.

        Args:
            path: The file.
            lowercase: Whether the model is uncased.
            engine: "rust" or "python".

        Returns:
            A `Tokenizer`.

        Raises:
            FileNotFoundError: `path` is not a file.
            ValueError: The file is not UTF-8, or is no BERT vocabulary.
        """
        pieces = read_vocabulary(path)
        return cls(pieces, lowercase=lowercase, engine=engine)

    @classmethod
    def from_pretrained(
        cls,
        name_or_dir: str | Path,
        engine: str = "rust",
        revision: str | None = None,
    ) -> "Tokenizer":
        """Reads the tokenizer of a model: `tokenizer.json` or `vocab.txt`.

        What one leaves out is read from tokenizer_config.json,
        special_tokens_map.json, added_tokens.json and the config of the model.
        Of stored truncation only the side is taken, `truncation_side`, and
        stored padding is switched off: rows are padded on the right, and a
        warning says so where a file names the left. Where no file says whether
        a `vocab.txt` is cased, its share of capitalized pieces decides;
        `decided_by` tells what did.

        Args:
            name_or_dir: A shipped name, a folder, or "hf://org/name".
            engine: "rust" or "python".
            revision: Of a model of the Hub: a branch, a tag or a commit.

        Returns:
            A `Tokenizer`; its `decided_by` is filled.

        Raises:
            FileNotFoundError: The folder has neither file.
            ValueError: A file describes another tokenizer than BERT's, or two
                files disagree.
            ImportError: A "hf://" name without huggingface_hub.
        """
        with reading(name_or_dir):
            folder = find_folder(at_revision(name_or_dir, revision))
            keywords, decided_by = read_tokenizer(folder)
        try:
            tokenizer = cls(**keywords, engine=engine)
        except ValueError as error:
            raise ValueError(f"{folder}: {error}") from error
        tokenizer.decided_by = decided_by
        return tokenizer

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        vocab_size: int = 8192,
        lowercase: bool = True,
        alphabet: str = "",
        engine: str = "rust",
        limit_alphabet: int | None = None,
    ) -> "Tokenizer":
        """Trains a vocabulary: the same lines give the same one, always.

        Args:
            lines: The text, read once; memory grows with its distinct words.
            vocab_size: How many pieces, special tokens included. A warning
                says so where the text gives fewer.
            lowercase: Whether to lower-case and drop accents.
            alphabet: Characters that get a piece of their own even where the
                text does not hold them.
            engine: The engine of the tokenizer returned.
            limit_alphabet: Most characters of the text that get a piece, the
                frequent ones; words with others become [UNK]. None: all.

        Returns:
            A `Tokenizer` of at most `vocab_size` pieces.

        Raises:
            ValueError: `lines` is a single string, holds no words or
                something other than strings, `vocab_size` does not hold the
                special tokens and every character, or `limit_alphabet` is
                below 1.
        """
        check_switch(lowercase, "lowercase")
        check_text(alphabet, "alphabet")
        if limit_alphabet is not None and (
            not is_integer(limit_alphabet) or limit_alphabet < 1
        ):
            raise ValueError(
                "`limit_alphabet` must be an integer >= 1, or None. "
                f"Received: {limit_alphabet!r}."
            )
        counts: Mapping[str, int] = wordpiece.count_words(lines, lowercase)
        if limit_alphabet is not None:
            counts = limit_letters(counts, limit_alphabet)
        pieces = train_pieces(counts, vocab_size, alphabet)
        return cls(pieces, lowercase=lowercase, engine=engine)

    def save_pretrained(
        self, folder: str | Path, model_max_length: int | None = None
    ) -> None:
        """Writes vocab.txt, tokenizer.json and tokenizer_config.json.

        They take effect together, as `files.write_together` says.

        Args:
            folder: Made where it is missing.
            model_max_length: The longest row that the model takes, for
                programs that cut at it; None leaves it out.

        Raises:
            ValueError: `folder` is no name of a folder, or `model_max_length`
                is below 1.
            OSError: The disk is full, or `folder` cannot be written.
        """
        _check_limit(model_max_length)
        folder = check_folder(folder)
        with write_together(folder, TOKENIZER_FILES, TOKENIZER_CONFIG) as new:
            self.write_files(new, model_max_length)

    def write_files(
        self, folder: Path, model_max_length: int | None = None
    ) -> None:
        """Writes the three files into a folder, one after the other.

        Args:
            folder: Made where it is missing.
            model_max_length: As in `save_pretrained`.

        Raises:
            ValueError: As in `save_pretrained`.
        """
        _check_limit(model_max_length)
        folder = check_folder(folder)
        folder.mkdir(parents=True, exist_ok=True)
        text = "\n".join(self.vocabulary) + "\n"
        write_text(folder / "vocab.txt", text)
        text = self._rust(None).to_str(pretty=True)
        write_text(folder / "tokenizer.json", text)
        settings = self._settings()
        if model_max_length is not None:
            settings["model_max_length"] = int(model_max_length)
        write_json(folder / TOKENIZER_CONFIG, settings)

    def _settings(self) -> dict[str, Any]:
        """Returns what tokenizer_config.json holds."""
        settings: dict[str, Any] = {
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": self.lowercase,
            "strip_accents": self.strip_accents,
            "tokenize_chinese_chars": self.split_cjk,
            **{
                f"{token[1:-1].lower()}_token": token
                for token in SPECIAL_TOKENS
            },
        }
        if self.truncation_side != "right":  # what others take it for
            settings["truncation_side"] = self.truncation_side
        if len(self.added_tokens) > len(SPECIAL_TOKENS):
            # Programs that read vocab.txt alone learn of them here.
            settings["added_tokens_decoder"] = {
                str(self.ids[t.content]): t.to_dict() for t in self.added_tokens
            }
        return settings

    # Encoding and decoding.

    def encode(
        self, text: str, pair: str | None = None, max_length: int | None = None
    ) -> Encoding:
        """Encodes one text, or a pair, as [CLS] text [SEP] pair [SEP].

        Args:
            text: The raw text.
            pair: The raw second text.
            max_length: Length to cut to, special tokens included, always from
                the longer text, at its end; with `truncation_side` "left" at
                its start. None never cuts.

        Returns:
            An `Encoding`.

        Raises:
            ValueError: A text is not a string or holds a lone surrogate, or
                `max_length` leaves no room for the texts.
        """
        check_text(text, "text")
        if pair is not None:
            check_text(pair, "pair")
        max_length = check_max_length(max_length, pair is not None)
        if self.engine == "python":
            return self._encode_in_python(text, pair, max_length)
        encoded = self._rust(max_length).encode(text, pair)
        return Encoding(
            tokens=encoded.tokens,
            input_ids=encoded.ids,
            token_type_ids=encoded.type_ids,
            attention_mask=encoded.attention_mask,
            offsets=encoded.offsets,
            word_ids=encoded.word_ids,
            sequence_ids=encoded.sequence_ids,
        )

    def __call__(
        self,
        texts: Sequence[str],
        pairs: Sequence[str] | None = None,
        max_length: int | None = None,
        padding: str = "longest",
    ) -> dict[str, np.ndarray]:
        """Encodes a batch of texts, padded on the right.

        So a text gets the vectors that it gets alone. Padding on the left, as
        `padding_side` of other libraries has it, would move it to other
        positions.

        Args:
            texts: A list of B raw texts; a tuple, an array or a column of a
                table will do.
            pairs: A list of B second texts.
            max_length: Length to cut to, as in `encode`.
            padding: "longest" pads to the longest row, "max_length" to
                `max_length`.

        Returns:
            `input_ids`, `token_type_ids` and `attention_mask`, each `(B, S)`
            int32.

        Raises:
            ValueError: The batch is empty, the two lists differ in length, a
                row is not a string, an option is unknown, or `max_length` is
                too long to pad to.
        """
        texts, pairs = check_rows(texts, pairs)
        max_length = check_max_length(max_length, pairs is not None)
        _check_padding(padding, max_length, len(texts))
        rows, type_rows = self._encode_rows(texts, pairs, max_length)
        width = max(map(len, rows))
        if padding == "max_length" and max_length is not None:
            width = max_length
        real = np.arange(width) < np.array([len(row) for row in rows])[:, None]
        batch = {
            "input_ids": np.full(real.shape, self.pad_token_id, "int32"),
            "token_type_ids": np.zeros(real.shape, "int32"),
            "attention_mask": real.astype("int32"),
        }
        batch["input_ids"][real] = _flatten(rows)
        if type_rows is not None:
            batch["token_type_ids"][real] = _flatten(type_rows)
        return batch

    def as_map(
        self, max_length: int | None = None, padding: str = "max_length"
    ) -> BatchMap:
        """Returns a function for `map` of a `tf.data.Dataset` of raw texts.

        It goes before `batch`, or after it, which is faster. Of an element
        `(texts, label)` the label comes out as it is, so that `fit` takes the
        data set:

            lines = tf.data.Dataset.from_tensor_slices((texts, labels))
            batches = lines.batch(32).map(tokenizer.as_map(max_length=64))
            model.fit(batches, shuffle=False)

        A pair is a tuple in place of the text, `((text, pair), label)`. A
        dict of columns will do too: `text` and perhaps `text_pair`, `label`
        and `weight`; other columns are left out.

        Args:
            max_length: Length to cut to, as in `encode`.
            padding: "max_length" pads to `max_length`, so that all batches
                have one shape; "longest" to the longest row.

        Returns:
            A function of elements. The batch that it gives is a dict of
            `input_ids`, `token_type_ids` and `attention_mask`, int32 of shape
            `(B, max_length)`.

        Raises:
            ValueError: `max_length` or `padding` is unknown or out of range.
        """
        max_length = check_max_length(max_length, False)
        _check_padding(padding, max_length, 1)
        return BatchMap(self, max_length, padding)

    def encode_pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns the ids of each text, without [CLS] and [SEP].

        Args:
            texts: A list of raw texts; nothing is cut or padded.

        Raises:
            ValueError: A text is not a string or holds a lone surrogate.
        """
        texts, _ = check_rows(texts, None)
        if self.engine == "python":
            return [[number for _, number in self._cut(t)] for t in texts]
        encoded = self._rust(None).encode_batch_fast(
            texts, add_special_tokens=False
        )
        return [row.ids for row in encoded]

    def decode(
        self, ids: Iterable[int], skip_special_tokens: bool = True
    ) -> str:
        """Joins ids to a text. Case, accents and spaces are not recovered.

        Args:
            ids: The ids of one text.
            skip_special_tokens: Whether to leave out [CLS], [SEP] and so on.

        Returns:
            The text.

        Raises:
            ValueError: An id is no integer, or outside the vocabulary.
        """
        check_switch(skip_special_tokens, "skip_special_tokens")
        ids = checked_list(ids, "ids")
        for i in ids:
            if not is_integer(i) or not 0 <= i < len(self):
                raise ValueError(
                    f"`ids` must hold integers in [0, {len(self)}). "
                    f"Received: {i!r}."
                )
        return self._rust(None).decode(
            [int(i) for i in ids], skip_special_tokens
        )

    def _encode_rows(self, texts, pairs, max_length):
        """Returns the ids of each row and, for pairs, their segments."""
        if self.engine == "python":
            encoded = [
                self.encode(text, pair, max_length)
                for text, pair in zip(
                    texts, pairs or [None] * len(texts), strict=True
                )
            ]
            return (
                [e.input_ids for e in encoded],
                [e.token_type_ids for e in encoded],
            )
        if pairs is not None:
            texts = list(zip(texts, pairs, strict=True))
        encoded = self._rust(max_length).encode_batch_fast(texts)
        rows = [row.ids for row in encoded]
        return rows, None if pairs is None else [
            row.type_ids for row in encoded
        ]

    def _encode_in_python(self, text, pair, max_length) -> Encoding:
        """Encodes with `wordpiece`, as the Rust library would."""
        parts = [self._cut(t) for t in (text, pair) if t is not None]
        if max_length is not None:
            room = max_length - len(parts) - 1
            from_left = self.truncation_side == "left"
            lengths = longest_first([len(part) for part in parts], room)
            parts = [
                part[len(part) - n :] if from_left else part[:n]
                for part, n in zip(parts, lengths, strict=True)
            ]
        added = (0, 0), None, None
        rows: list[tuple] = [("[CLS]", 0, *added)]
        ids = [self.cls_token_id]
        for segment, part in enumerate(parts):
            rows.extend(
                (p.text, segment, (p.start, p.end), p.word, segment)
                for p, _ in part
            )
            rows.append(("[SEP]", segment, *added))
            ids += [*(number for _, number in part), self.sep_token_id]
        tokens, types, offsets, words, sequences = map(
            list, zip(*rows, strict=True)
        )
        return Encoding(
            tokens, ids, types, [1] * len(ids), offsets, words, sequences
        )

    def _cut(self, text: str) -> list[tuple[wordpiece.Piece, int]]:
        """Cuts a text with `wordpiece`: the pieces and their ids."""
        rules: dict[str, Any] = {
            "lowercase": self.lowercase,
            "strip_accents": self._strips_accents,
            "split_cjk": self.split_cjk,
            "max_word_length": self.max_word_length,
        }
        tokens = self._kept_whole
        if not all(token.is_plain for token in tokens):
            return [*whole_tokens.cut(text, tokens, self.ids, **rules)]
        names = [token.content for token in tokens]
        pieces = wordpiece.tokenize(
            text, self.ids, special_tokens=names, **rules
        )
        return [(piece, self.ids[piece.text]) for piece in pieces]

    @property
    def _strips_accents(self) -> bool:
        """Whether accents are dropped: None means "as `lowercase`"."""
        if self.strip_accents is None:
            return self.lowercase
        return self.strip_accents

    @cached_property
    def _word_piece(self) -> models.WordPiece:
        """The vocabulary inside the Rust library, shared by every cut."""
        return models.WordPiece(
            self.ids,
            unk_token="[UNK]",
            max_input_chars_per_word=self.max_word_length,
        )

    def _rust(self, max_length: int | None) -> rust.Tokenizer:
        """Returns the Rust tokenizer that cuts at `max_length`, made once."""
        key = max_length, self.truncation_side
        if key not in self._rust_tokenizers:
            built = self._build_rust()
            if max_length is not None:
                built.enable_truncation(
                    max_length,
                    strategy="longest_first",
                    direction=self.truncation_side,
                )
            self._rust_tokenizers[key] = built
        return self._rust_tokenizers[key]

    def _build_rust(self) -> rust.Tokenizer:
        """Assembles the same five steps from the parts of the Rust library."""
        built = rust.Tokenizer(self._word_piece)
        built.normalizer = normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=self.split_cjk,
            strip_accents=self.strip_accents,
            lowercase=self.lowercase,
        )
        # After the normalizer, which cleans what it is to find.
        for special, add in (
            (True, built.add_special_tokens),
            (False, built.add_tokens),
        ):
            add(
                [
                    rust.AddedToken(**token.to_dict())
                    for token in self._kept_whole
                    if token.special == special
                ]
            )
        built.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        built.post_processor = processors.BertProcessing(
            ("[SEP]", self.sep_token_id), ("[CLS]", self.cls_token_id)
        )
        built.decoder = decoders.WordPiece(prefix=wordpiece.CONTINUATION)
        return built


def longest_first(lengths: Sequence[int], room: int) -> list[int]:
    """Returns how much to keep of one text or two, the longer one cut first.

    Args:
        lengths: Number of pieces of each text.
        room: Number of pieces that may stay in all.
    """
    if sum(lengths) <= room:
        return list(lengths)
    if len(lengths) == 1:
        return [room]
    shorter, longer = sorted(lengths)
    shorter = min(shorter, room // 2)
    if lengths[0] > lengths[1]:
        return [room - shorter, shorter]
    return [shorter, room - shorter]


def _check_padding(padding: str, max_length: int | None, rows: int) -> None:
    """Refuses an unknown padding, and one that would fill the memory.

    Args:
        padding: "longest" or "max_length".
        max_length: The length to pad to.
        rows: How many rows there are.
    """
    if not isinstance(padding, str) or padding not in PADDINGS:
        raise ValueError(
            '`padding` must be "longest" or "max_length". '
            f"Received: {padding!r}."
        )
    if padding == "longest":
        return
    if max_length is None:
        raise ValueError('`padding="max_length"` needs `max_length`.')
    if max_length > MOST_PADDED or rows * max_length > MOST_CELLS:
        raise ValueError(
            f'With `padding="max_length"`, `max_length` must be at most '
            f"{MOST_PADDED:,}, and all rows together at most {MOST_CELLS:,}. "
            f"Received: {rows:,} rows of {max_length:,}."
        )


def _flatten(rows) -> np.ndarray:
    """Joins the rows of a ragged list."""
    return np.fromiter(chain.from_iterable(rows), "int32")


def _check_limit(length: int | None) -> None:
    """Refuses a longest row that is neither a count of tokens nor None."""
    if length is None:
        return
    if not is_integer(length) or length < 1:
        raise ValueError(
            "`model_max_length` must be an integer >= 1, or None. "
            f"Received: {length!r}."
        )
