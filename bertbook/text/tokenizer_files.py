"""The files of a stored tokenizer, read together into keywords of `Tokenizer`.

A tokenizer is stored in up to six files that repeat each other. What one file
leaves out another one tells; where two disagree there is an error. Only where
no file tells the case of a vocabulary do its pieces.
"""

import json
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Tokenizer

from bertbook.files import read_json
from bertbook.text.added_tokens import SWITCHES, AddedToken
from bertbook.text.reach import guess_accents, guess_lowercase
from bertbook.text.vocabulary import SPECIAL_TOKENS, read_vocabulary
from bertbook.text.wordpiece import MOST_WORD_LENGTH

INTEGER = re.compile("[0-9]{1,18}")
# What the parts of a tokenizer.json must be for it to be BERT's.
BERT_PARTS = {
    ("model", "type"): "WordPiece",
    ("model", "unk_token"): "[UNK]",
    ("model", "continuing_subword_prefix"): "##",
    ("normalizer", "type"): "BertNormalizer",
    ("normalizer", "clean_text"): True,
    ("pre_tokenizer", "type"): "BertPreTokenizer",
}
# Keys of the settings that are keywords here.
KEYWORDS = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "split_cjk",
}
NORMALIZER = {
    "lowercase": "lowercase",
    "strip_accents": "strip_accents",
    "handle_chinese_chars": "split_cjk",
}
TOKEN_KEYS = {f"{t[1:-1].lower()}_token": t for t in SPECIAL_TOKENS}
MORE_TOKEN_KEYS = ("bos_token", "eos_token")
MORE_TOKEN_LISTS = ("additional_special_tokens", "extra_special_tokens")
# Settings under which a vocab.txt is read otherwise.
BASIC = {
    "do_basic_tokenize": True,
    "word_tokenizer_type": "basic",
    "subword_tokenizer_type": "wordpiece",
}
# Classes of transformers that read a vocab.txt as BERT does.
BERT_CLASSES = {
    f"{family}Tokenizer{fast}"
    for family in (
        "Bert",
        "ConvBert",
        "DistilBert",
        "DPRContextEncoder",
        "DPRQuestionEncoder",
        "DPRReader",
        "Electra",
        "LayoutLM",
        "Lxmert",
        "MobileBert",
        "MPNet",
        "RetriBert",
        "Realm",
        "SqueezeBert",
    )
    for fast in ("", "Fast")
} | {"PreTrainedTokenizerFast", "TokenizersBackend"}
# What a template of BERT is: token or text, and its segment.
ONE_TEXT = [("[CLS]", 0), ("A", 0), ("[SEP]", 0)]
TWO_TEXTS = [*ONE_TEXT, ("B", 1), ("[SEP]", 1)]


class Claim(NamedTuple):
    """What one file says of one thing."""

    path: Path
    key: str
    value: Any


def read_tokenizer(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Reads every file of a tokenizer in a folder.

    Returns:
        Keywords of `Tokenizer`; and for each setting what decided it.

    Raises:
        FileNotFoundError: There is no tokenizer.json and no vocab.txt.
        ValueError: A file is damaged, describes another tokenizer, or
            disagrees with another one.
    """
    library = folder / "tokenizer.json"
    if not library.is_file() and not (folder / "vocab.txt").is_file():
        raise FileNotFoundError(
            f"No tokenizer.json and no vocab.txt in {folder}."
        )
    stored = read_library_file(library) if library.is_file() else {}
    settings = [
        (path, read_json(path))
        for name in ("tokenizer_config.json", "special_tokens_map.json")
        if (path := folder / name).is_file()
    ]
    configs = [
        (path, read_json(path))
        for name in ("config.json", "bert_config.json")
        if (path := folder / name).is_file()
    ]
    if not stored:
        _check_classes([*settings, *configs])
    _check_token_names(settings)
    pieces, tokens = _pieces_and_tokens(folder, stored, settings)
    keywords, reasons = _read_rules(library, stored, [*settings, *configs])
    if "lowercase" not in keywords:
        keywords["lowercase"], reasons["lowercase"] = guess_lowercase(pieces)
        strips = guess_accents(pieces)
        if keywords["lowercase"] and not strips:
            keywords.setdefault("strip_accents", False)
            why = "pieces have accents, or parts that look like them"
            reasons.setdefault("strip_accents", why)
    sides = _read_sides(library, stored, settings)
    keywords |= {"vocabulary": pieces, "added_tokens": tokens, **sides}
    return keywords, reasons


def read_library_file(path: Path) -> dict[str, Any]:
    """Reads a tokenizer.json, and checks that it is one of BERT's.

    The length of stored truncation and padding is no part of the tokenizer.

    Raises:
        ValueError: The file is damaged or describes another tokenizer.
    """
    stored = read_json(path)
    for (part, key), expected in BERT_PARTS.items():
        settings = stored.get(part)
        received = settings.get(key) if isinstance(settings, dict) else None
        if received != expected:
            raise ValueError(
                f"{path}: `{key}` of `{part}` must be {expected!r}. "
                f"Received: {received!r}."
            )
    plain = {**stored, "truncation": None, "padding": None}
    try:
        Tokenizer.from_str(json.dumps(plain))
    except Exception as error:  # the library raises no narrower one
        raise ValueError(f"{path} is no tokenizer.json: {error}.") from error
    limit = stored["model"]["max_input_chars_per_word"]
    if not 1 <= limit <= MOST_WORD_LENGTH:
        raise ValueError(
            f"{path}: `max_input_chars_per_word` must be in [1, "
            f"{MOST_WORD_LENGTH}], since the time for a word grows with the "
            f"cube of its length. Received: {limit}."
        )
    _check_template(path, stored)
    return stored


def _check_template(path: Path, stored: Mapping[str, Any]) -> None:
    """Refuses special tokens around texts that are not BERT's."""
    processor = stored.get("post_processor") or {}
    ids = dict(stored["model"]["vocab"])
    ids |= {t["content"]: t["id"] for t in stored.get("added_tokens") or []}
    kind = processor.get("type")
    fits = kind is None
    if kind == "BertProcessing":
        around = [tuple(processor[name]) for name in ("cls", "sep")]
        fits = around == [(t, ids.get(t)) for t in ("[CLS]", "[SEP]")]
    if kind == "TemplateProcessing":
        fits = (
            _template(processor["single"]) == ONE_TEXT
            and _template(processor["pair"]) == TWO_TEXTS
            and all(
                token["ids"] == [ids.get(name)]
                for name, token in processor["special_tokens"].items()
            )
        )
    if not fits:
        raise ValueError(
            f"{path}: `post_processor` must put [CLS] before a text and [SEP] "
            f"after each. Received: {json.dumps(processor)[:200]}."
        )


def _template(parts: Any) -> list[tuple[str, int]]:
    """Returns what a template puts in a row, with the segments."""
    return [(p["id"], p["type_id"]) for part in parts for p in part.values()]


def _check_classes(files: list[tuple[Path, dict[str, Any]]]) -> None:
    """Refuses settings under which a vocab.txt is not read as BERT's."""
    for path, stored in files:
        kind = stored.get("tokenizer_class")
        if kind is not None and kind not in list(BERT_CLASSES):
            raise ValueError(
                f"{path}: `tokenizer_class` must be one that cuts texts as "
                "BERT's does; `Tokenizer.from_vocab` reads the pieces all the "
                f"same. Received: {kind!r}."
            )
        for key, expected in BASIC.items():
            if stored.get(key, expected) not in (expected, None):
                raise ValueError(
                    f"{path}: `{key}` must be {expected!r}. Received: "
                    f"{stored[key]!r}."
                )


def _check_token_names(files: list[tuple[Path, dict[str, Any]]]) -> None:
    """Refuses other names of the special tokens than those of BERT."""
    for key, expected in TOKEN_KEYS.items():
        claims = [
            Claim(path, f"`{key}`", name)
            for path, stored in files
            for name in [_content(path, key, stored.get(key))]
            if name is not None
        ]
        _check_agreement(claims)
        if claims and claims[0].value != expected:
            raise ValueError(
                f"{claims[0].path}: `{key}` must be {expected!r}. "
                f"Received: {claims[0].value!r}."
            )


def _content(path: Path, key: str, token: Any) -> str | None:
    """Returns the text of a token, stored as such or as a dict."""
    content = token.get("content") if isinstance(token, dict) else token
    if token is not None and not (isinstance(content, str) and content):
        raise ValueError(
            f"{path}: `{key}` must be the text of a token. Received: {token!r}."
        )
    return content


def _read_rules(
    library: Path,
    stored: Mapping[str, Any],
    files: list[tuple[Path, dict[str, Any]]],
) -> tuple[dict[str, Any], dict[str, str]]:
    """Reads case, accents and CJK from every file that tells them."""
    claims: dict[str, list[Claim]] = defaultdict(list)
    if stored:
        for key, keyword in NORMALIZER.items():
            value = stored["normalizer"].get(key)
            name = f"`{key}` of `normalizer`"
            claims[keyword].append(Claim(library, name, value))
    for path, values in files:
        for key, keyword in KEYWORDS.items():
            value = values.get(key)
            if not isinstance(value, bool | None):
                raise ValueError(
                    f"{path}: `{key}` must be true or false. "
                    f"Received: {value!r}."
                )
            # Without a value it means "as the case" of accents alone.
            is_said = key == "strip_accents" and key in values
            if value is not None or is_said:
                claims[keyword].append(Claim(path, f"`{key}`", value))
    keywords: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    for keyword in ("lowercase", "strip_accents", "split_cjk"):
        told = claims[keyword]
        _check_agreement(told, instead_of_none=keywords.get("lowercase"))
        if told:
            keywords[keyword] = told[0].value
            reasons[keyword] = f"{told[0].path.name}, {told[0].key}"
    if stored:
        limit = stored["model"]["max_input_chars_per_word"]
        keywords["max_word_length"] = limit
    return keywords, reasons


def _read_sides(
    library: Path,
    stored: Mapping[str, Any],
    settings: list[tuple[Path, dict[str, Any]]],
) -> dict[str, str]:
    """Reads which end of a text is cut; tells where padding is not followed.

    As in transformers, tokenizer_config.json goes before tokenizer.json.

    Returns:
        `truncation_side`, where a file says it.

    Raises:
        ValueError: A file names no side.
    """
    sides: dict[str, str] = {}
    for key, part in (
        ("truncation_side", "truncation"),
        ("padding_side", "padding"),
    ):
        said = stored.get(part)
        direction = said.get("direction") if isinstance(said, dict) else None
        claims = [Claim(library, f"`direction` of `{part}`", direction)]
        claims += [
            Claim(path, f"`{key}`", values.get(key))
            for path, values in settings
            if path.name == "tokenizer_config.json"
        ]
        for path, name, value in claims:
            if value is None:
                continue
            side = str(value).lower() if path == library else value
            if side not in ("right", "left"):
                raise ValueError(
                    f"{path}: {name} must be 'right' or 'left'. "
                    f"Received: {value!r}."
                )
            sides[key] = side
    if sides.pop("padding_side", "right") == "left":
        warnings.warn(
            f"{library.parent}: `padding_side` is 'left', but rows are padded "
            "on the right here, so that a text has the vectors that it has "
            "alone.",
            stacklevel=4,
        )
    return sides


def _check_agreement(claims: list[Claim], instead_of_none: Any = None) -> None:
    """Refuses two files that say different things."""
    values = [
        instead_of_none if claim.value is None else claim.value
        for claim in claims
    ]
    for claim, value in zip(claims, values, strict=True):
        if value != values[0]:
            raise ValueError(
                f"{claims[0].path} and {claim.path} must say the same: put "
                "into both what the model was trained with, or take the key "
                f"out of the second. Received: {claims[0].key} is "
                f"{claims[0].value!r}, {claim.key} is {claim.value!r}."
            )


def _pieces_and_tokens(
    folder: Path,
    stored: Mapping[str, Any],
    settings: list[tuple[Path, dict[str, Any]]],
) -> tuple[list[str], list[AddedToken]]:
    """Returns the pieces by their ids, and the added tokens."""
    library, vocabulary = folder / "tokenizer.json", folder / "vocab.txt"
    claims: dict[str, Claim] = {}
    pieces: list[str] = []
    if stored:
        for piece, number in stored["model"]["vocab"].items():
            claims[piece] = Claim(library, piece, number)
    else:
        pieces = read_vocabulary(vocabulary)
        for number, piece in enumerate(pieces):
            if piece in claims:
                return pieces, []  # `number_pieces` names both ids
            claims[piece] = Claim(vocabulary, piece, number)
    tokens: dict[str, AddedToken] = {}
    origins: dict[str, Path] = {}
    for claim, token in _added_tokens(folder, stored, settings):
        if token.content in tokens:
            origin = origins[token.content]
            _check_flags(origin, tokens[token.content], claim, token)
        else:
            tokens[token.content], origins[token.content] = token, claim.path
        known = claims.setdefault(token.content, claim)
        if known.value != claim.value:
            _refuse_two_ids(known, claim)
    for path, token in _named_tokens(settings):
        # As in transformers, a token without an id gets the next one.
        name = token.content
        claims.setdefault(name, Claim(path, name, len(claims)))
        tokens.setdefault(name, token)
    in_order = _in_order(claims, library if stored else vocabulary)
    if stored and vocabulary.is_file():
        _check_lines(vocabulary, library, in_order)
    return in_order, list(tokens.values())


def _added_tokens(
    folder: Path,
    stored: Mapping[str, Any],
    settings: list[tuple[Path, dict[str, Any]]],
) -> Iterator[tuple[Claim, AddedToken]]:
    """Yields the added tokens of every file, and their ids."""
    for token in stored.get("added_tokens") or []:
        yield _token_of(folder / "tokenizer.json", token["id"], token)
    for path, values in settings:
        decoder = values.get("added_tokens_decoder") or {}
        if not isinstance(decoder, dict):
            raise ValueError(
                f"{path}: `added_tokens_decoder` must be a JSON object. "
                f"Received: {type(decoder).__name__}."
            )
        for number, token in decoder.items():
            yield _token_of(path, number, token)
    path = folder / "added_tokens.json"
    if path.is_file():
        special = {token.content for _, token in _named_tokens(settings)}
        special |= set(SPECIAL_TOKENS)
        for content, number in read_json(path).items():
            is_special = content in special
            token = {
                "content": content,
                "special": is_special,
                "normalized": not is_special,
            }
            # This file has no switches: those of another one stay.
            yield _token_of(path, number, token)


def _token_of(path: Path, number: Any, token: Any) -> tuple[Claim, AddedToken]:
    """Returns an added token of a file, and its id."""
    try:
        known = {k: token[k] for k in ("content", *SWITCHES) if k in token}
        if "special" not in known:
            known["special"] = False
        if "normalized" not in known:
            known["normalized"] = not known["special"]
        made = AddedToken(**known)
        if not INTEGER.fullmatch(str(number)):
            raise ValueError("an id must be an integer")
        return Claim(path, made.content, int(number)), made
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{path}: an added token must have an id, a text and switches. "
            f"Received: {token!r} as {number!r}."
        ) from error


def _check_flags(
    origin: Path, known: AddedToken, claim: Claim, token: AddedToken
) -> None:
    """Refuses different switches of one token in two files that have them."""
    if claim.path.name == "added_tokens.json" or claim.path == origin:
        return
    for switch in SWITCHES:
        name = f"`{switch}` of {token.content!r}"
        said = getattr(known, switch), getattr(token, switch)
        _check_agreement(
            [Claim(origin, name, said[0]), Claim(claim.path, name, said[1])]
        )


def _named_tokens(
    settings: list[tuple[Path, dict[str, Any]]],
) -> Iterator[tuple[Path, AddedToken]]:
    """Yields the special tokens that the settings name beside BERT's five."""
    for path, values in settings:
        for key in MORE_TOKEN_KEYS:
            if values.get(key) is not None:
                yield path, _named_token(path, key, values[key])
        for key in MORE_TOKEN_LISTS:
            names = values.get(key) or []
            if isinstance(names, dict):
                names = list(names.values())
            if not isinstance(names, list):
                raise ValueError(
                    f"{path}: `{key}` must be a list of tokens. Received: "
                    f"{names!r}."
                )
            for token in names:
                if token is not None:
                    yield path, _named_token(path, key, token)


def _named_token(path: Path, key: str, token: Any) -> AddedToken:
    """Returns a special token that is named, with the switches it has."""
    content = _content(path, key, token)
    given = token if isinstance(token, dict) else {}
    known = {k: given[k] for k in SWITCHES if k in given}
    try:
        return AddedToken(**known | {"content": content, "special": True})
    except ValueError as error:
        raise ValueError(f"{path}, `{key}`: {error}") from None


def _refuse_two_ids(known: Claim, claim: Claim) -> None:
    both = f"{known.path}"
    if claim.path != known.path:
        both += f" and {claim.path}"
    raise ValueError(
        f"{both}: a piece must have one id. Received: {claim.key!r} with "
        f"{known.value} and {claim.value}."
    )


def _in_order(claims: Mapping[str, Claim], path: Path) -> list[str]:
    """Lists the pieces by their ids, without gaps."""
    by_id: dict[int, Claim] = {}
    for claim in claims.values():
        other = by_id.setdefault(claim.value, claim)
        if other is not claim and other.path != claim.path:
            raise ValueError(
                f"{other.path} and {claim.path} must give an id to one piece. "
                f"Received: {claim.value} for {other.key!r} and {claim.key!r}."
            )
    numbers = sorted(claim.value for claim in claims.values())
    if numbers != list(range(len(numbers))):
        last = by_id[numbers[-1]].path
        raise ValueError(
            f"{last if last != path else path}: the ids must be 0, 1, 2, ... "
            f"without a gap. Received: {len(numbers)} pieces, ids up to "
            f"{numbers[-1]}."
        )
    return [by_id[number].key for number in numbers]


def _check_lines(path: Path, library: Path, pieces: list[str]) -> None:
    """Refuses a vocab.txt that has other pieces than the tokenizer.json."""
    lines = path.read_bytes().decode("utf-8", "replace").split("\n")
    for number, (line, piece) in enumerate(zip(lines, pieces, strict=False)):
        line = line.removesuffix("\r").removeprefix("" if number else "\ufeff")
        if line and line != piece:
            raise ValueError(
                f"{path} and {library} must have the same pieces: remove the "
                f"one that is not the model's. Received: {line!r} and "
                f"{piece!r} as id {number}."
            )
