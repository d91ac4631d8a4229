"""The legend, and the symbols of the five texts."""

import inspect
import io
import re
import tokenize
from dataclasses import fields

import bertbook as bb
import book
from bertbook.book import notation
from bertbook.book.references import SOURCES
from bertbook.config import BertConfig
from bertbook.weights.names import encoder_shapes

CONFIG = BertConfig(
    vocab_size=53,
    hidden_size=28,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=40,
    max_position_embeddings=17,
)
SIZES = {
    "S": 11,
    "S*": CONFIG.max_position_embeddings,
    "T": 5,
    "D": CONFIG.hidden_size,
    "H": CONFIG.head_size,
    "F": CONFIG.intermediate_size,
    "V": CONFIG.vocab_size,
}
# Names that the texts use for sizes, each in the table.
NAMES = (
    "emb_dim input_length target_length hidden_dim vocab_size d_model d_F "
    "d_ffnn H L N A d_k d_q d_v h n_heads n_layers d"
)
ENTRIES = (*notation.sizes(), *notation.tensors(), *notation.others())
WEIGHTS = [
    entry
    for entry in notation.tensors()
    if entry.name.startswith(("block_", "embeddings/", "pooler/"))
]


def known_fields():
    properties = inspect.getmembers(
        BertConfig, lambda member: isinstance(member, property)
    )
    return {f.name for f in fields(BertConfig)} | {n for n, _ in properties}


def test_every_field_exists():
    named = {entry.field for entry in (*notation.LEGEND, *ENTRIES)} - {""}
    assert named - known_fields() == set()


def test_the_legend_is_that_of_the_package():
    """Letter and meaning stand in the package's docstring, and no other."""
    found = re.findall(r"\b([A-Z]) ([a-z][a-z -]+)", bb.__doc__)
    legend = {letter: meaning.strip() for letter, meaning in found}
    assert legend == {e.letter: e.meaning for e in notation.LEGEND}


def test_the_fields_of_the_legend_are_those_of_the_package():
    for entry in notation.LEGEND:
        if f"(`{entry.field}`)" in bb.__doc__:
            assert re.search(
                rf"\b{entry.letter} [^(]*\(`{entry.field}`\)", bb.__doc__
            )
    held = [e for e in notation.LEGEND if f"(`{e.field}`)" in bb.__doc__]
    assert [entry.letter for entry in held] == ["D", "N", "F", "L"]


def test_every_symbol_for_a_size_is_there():
    symbols = {entry.symbol for entry in notation.sizes()}
    assert set(NAMES.split()) - symbols == set()


def test_a_size_has_the_field_of_its_letter():
    letters = {entry.letter: entry.field for entry in notation.LEGEND}
    letters["S*"] = "max_position_embeddings"
    for entry in notation.sizes():
        assert entry.field in (letters[entry.name], "")


def test_weights_have_the_name_and_shape_in_the_package():
    """Matrices of a head are columns of the one that all heads share."""
    shapes = encoder_shapes(CONFIG)
    for entry in WEIGHTS:
        shape = list(notation.shape_of(entry, SIZES))
        if entry.shape.endswith("H"):
            shape[-1] *= CONFIG.num_attention_heads
        assert tuple(shape) == shapes[entry.name.format(l=2)], entry.symbol


def test_there_are_weights_of_every_kind():
    kinds = {entry.name.split("/", 1)[1] for entry in WEIGHTS}
    assert len(kinds) == 13


def test_texts_are_known_and_each_has_symbols():
    papers = {notation.TRANSFORMER, notation.BERT}
    found = {source for entry in ENTRIES for source in entry.sources}
    assert found == set(SOURCES) | papers
    for sources, published_word, word in notation.words():
        assert set(sources) <= set(SOURCES)
        assert published_word != word


def test_no_symbol_stands_twice_for_one_text():
    """But for those that a text itself uses twice."""
    met = [
        (symbol, source)
        for entry in ENTRIES
        for symbol in entry.symbol.split(", ")
        for source in entry.sources
    ]
    twice = {pair for pair in met if met.count(pair) > 1}
    assert {symbol for symbol, _ in twice} == {"i", "X", "E"}


def test_the_same_repeats_the_meaning_above():
    entry = next(e for e in notation.sizes() if e.symbol == "d_v")
    assert entry.meaning == "width of one head, of values"
    assert not any(notation.SAME in entry.meaning for entry in ENTRIES)


def test_letters_with_several_meanings():
    shared = notation.shared_letters()
    assert {"N", "h", "X", "i", "A", "W_1"} <= set(shared)
    assert {entry.name for entry in shared["N"]} == {"L", "S"}
    assert "d_k" not in shared
    others = notation.other_meanings()
    assert {"H", "N", "S", "T", "D", "K", "V"} <= set(others)
    assert "M" not in others


def test_a_shape_takes_its_letters():
    entry = next(e for e in notation.tensors() if e.symbol == "W_P")
    assert notation.shape_of(entry, SIZES) == (17, 28)


# A tuple of letters and numbers: not the arguments of a call, and no formula.
SIZE = r"(?:[A-Z]|\d+|\.\.\.)"
SHAPE = re.compile(rf"(?<![\w}}])\(({SIZE}(?:, {SIZE})*),?\)")


def said(source):
    """Returns the comments and strings of a program, where shapes stand."""
    lines = io.StringIO(book.without_magics(source)).readline
    kinds = tokenize.COMMENT, tokenize.STRING
    return "\n".join(
        token.string
        for token in tokenize.generate_tokens(lines)
        if token.type in kinds
    )


def _place_of(chapter):
    """Returns "20" for a chapter, and a place that belongs to it for a lab."""
    if chapter.is_lab:
        return f"{chapter.number}.{chapter.path.stem}"
    return chapter.number


PLACES = {
    ".".join(path.relative_to(book.ROOT / "bertbook").with_suffix("").parts): (
        said(path.read_text("utf-8"))
    )
    for path in sorted((book.ROOT / "bertbook").rglob("*.py"))
} | {
    _place_of(chapter): "\n".join(
        said(cell.source)
        for cell in book.code_cells(book.read_notebook(chapter.path))
    )
    for chapter in book.everything()
}


def letters_of(place):
    """Returns the letters of all shapes that a module or chapter speaks of."""
    shapes = SHAPE.findall(PLACES[place])
    return {letter for shape in shapes for letter in re.findall("[A-Z]", shape)}


def belongs(place, to):
    return place == to or place.startswith(to + ".")


def test_every_letter_of_a_shape_is_known():
    legend = {entry.letter for entry in notation.LEGEND}
    found = {}
    for place in PLACES:
        known = legend | {
            entry.letter
            for entry in notation.LOCAL
            if any(belongs(place, to) for to in entry.places)
        }
        found[place] = letters_of(place) - known
    assert {place: letters for place, letters in found.items() if letters} == {}


def test_every_local_letter_is_used_where_it_is_listed():
    for entry in notation.LOCAL:
        for to in entry.places:
            within = [place for place in PLACES if belongs(place, to)]
            used = set().union(*map(letters_of, within))
            assert entry.letter in used, (entry, to)


def test_a_local_letter_means_one_thing_in_each_place():
    legend = {entry.letter for entry in notation.LEGEND}
    met = [(e.letter, place) for e in notation.LOCAL for place in e.places]
    assert len(met) == len(set(met))
    assert not legend & {entry.letter for entry in notation.LOCAL}
