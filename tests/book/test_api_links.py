"""Chapters lead to the entries of the API, and the entries back."""

import re

import pytest

import api_docstrings
import api_index
import api_links
import book
import quotes


def test_code_in_prose_has_its_entry():
    for code, entry in (
        ("bb.finetune", "bertbook.finetune"),
        ("bb.setup()", "bertbook.setup"),
        ('bb.BertConfig.named("tiny")', "bertbook.BertConfig.named"),
        ("bb.BertEncoder.embed_texts", "bertbook.BertEncoder.embed_texts"),
        (
            "bb.BertEncoder.save_pretrained",
            "bertbook.BertEncoder.save_pretrained",
        ),
        (
            "bertbook.model.attention.SelfAttention.call",
            "bertbook.model.attention.SelfAttention.call",
        ),
        ("bertbook.model.encoder.BertEncoder", "bertbook.BertEncoder"),
        ("bb.locations.shelf", "bertbook.locations.shelf"),
        ("bertbook.text.wordpiece", "bertbook.text.wordpiece"),
        ("bb.BertEncoder.nothing", "bertbook.BertEncoder"),
        ("model = bb.CausalLM(bb.CausalLMConfig())", "bertbook.CausalLM"),
        ("bb.nothing", None),
        ("bbox.finetune", None),
        ("finetune", None),
    ):
        assert api_links.entry_of(code) == entry


def highlighted(source):
    """Returns the HTML of code, as a page has it."""
    pygments = pytest.importorskip("pygments")
    lexers = pytest.importorskip("pygments.lexers")
    formatters = pytest.importorskip("pygments.formatters")
    return pygments.highlight(
        source, lexers.PythonLexer(), formatters.HtmlFormatter()
    )


def linked(source):
    """Returns the text and the address of each link in highlighted code."""
    page = api_links.link_code(highlighted(source), lambda entry: f"#{entry}")
    found = re.findall(r'<a class="api" href="#([^"]+)">(.*?)</a>', page)
    return [(re.sub("<[^>]+>", "", text), entry) for entry, text in found]


def test_names_in_code_are_linked():
    source = (
        "# quoted from bertbook.model.attention.SelfAttention.call\n"
        "from bertbook.figures import charts\n"
        'encoder = bb.BertEncoder.from_pretrained("mini").trainable\n'
        "bb.nothing(bb.__version__)\n"
        "print('bb.finetune')\n"
        "@book  # quoted from bertbook.plain.tokenizer.split_words\n"
    )
    split = "bertbook.plain.tokenizer.split_words"
    attention = "bertbook.model.attention.SelfAttention.call"
    encoder = "bb.BertEncoder.from_pretrained"
    assert linked(source) == [
        (attention, attention),
        ("bertbook.figures", "bertbook.figures"),
        (encoder, "bertbook.BertEncoder.from_pretrained"),
        (split, split),
    ]


def test_code_in_a_table_breaks_at_its_signs():
    cell = '<code><span class="pre">bb.add_lora(&quot;x&quot;)</span></code>'
    soft = api_links.soften(f"<p>{cell}</p><td>{cell}</td>")
    assert soft.startswith(f"<p>{cell}</p>")
    assert "bb<wbr>.add_lora(<wbr>&quot;x&quot;)</span>" in soft


def test_code_without_an_address_stays_as_it_is():
    page = highlighted("bb.finetune(model)\n")
    assert api_links.link_code(page, lambda entry: None) == page


def test_every_quote_and_every_name_of_a_chapter_has_an_entry():
    quoted, named = set(), set()
    for chapter in book.everything():
        for cell in book.read_notebook(chapter.path).cells:
            if book.is_quote(cell):
                quoted.add(quotes.name_of(cell))
            elif cell.cell_type == "code":
                named |= set(re.findall(r"\bbb\.[a-zA-Z]\w+", cell.source))
    assert len(quoted) > 70
    assert len(named) > 20
    hidden = {q for q in quoted if "._" in q}  # a page shows public names
    assert [q for q in quoted - hidden if not api_links.resolve(q)] == []
    assert [n for n in named if not api_links.resolve(n)] == []


def test_an_entry_knows_the_chapters_that_use_it():
    uses = api_links.uses()
    attention = "bertbook.plain.attention.attention"
    assert uses[attention]["20_attention"] == "quotes"
    assert "40_one_sentence" in uses["bertbook.finetune"]
    assert "bertbook.setup" not in uses  # it is in every first cell
    chapters = {name for found in uses.values() for name in found}
    assert len(chapters) > 25


# Docstrings.


def test_types_stand_beside_arguments_and_names_are_links():
    docstring = """Returns a mask, as `visible_keys` does.

Args:
    batch: A dict; see `BertEncoder.call` and `config`.
    size: S.

Returns:
    A mask: `(B, S)`,
    and `nothing`.

Raises:
    ValueError: `size` is too large.

A file:

    open("x")"""
    types = {"batch": "Batch", "size": "int | None", "return": "BertConfig"}
    place = api_docstrings.Place("bertbook.model.encoder")
    rest = api_docstrings.as_rest(docstring.splitlines(), place, types)
    call = "bertbook.BertEncoder.call"
    assert rest == [
        "Returns a mask, as :py:obj:`visible_keys "
        "<bertbook.model.attention.visible_keys>` does.",
        "",
        "Args:",
        "    batch (Batch): A dict; see "
        f":py:obj:`BertEncoder.call <{call}>` and ``config``.",
        "    size (int | None): \\S.",
        "",
        ":returns: A mask: ``(B, S)``,",
        "    and ``nothing``.",
        ":rtype: ~bertbook.BertConfig",
        "",
        "Raises:",
        "    ValueError: ``size`` is too large.",
        "",
        "A file::",
        "",
        '    open("x")',
    ]


def test_a_name_means_what_it_means_in_its_place():
    place = api_docstrings.Place(
        "bertbook.text.tokenizer",
        owner="bertbook.text.tokenizer.Tokenizer",
        own_names=frozenset({"train"}),
        room="bertbook.text",
    )
    assert place.entry_of("encode") == "bertbook.Tokenizer.encode"
    assert place.entry_of("train") is None  # a parameter
    assert place.entry_of("wordpiece") == "bertbook.text.wordpiece"
    assert api_docstrings.Place().entry_of("wordpiece") is None


def test_types_come_from_the_stub_or_the_source():
    for entry, name, expected in (
        ("bertbook.finetune", "epochs", "int"),
        ("bertbook.finetune", "train", "Table"),
        ("bertbook.attention_path", "model", "BertEncoder | BertWithHead"),
        ("bertbook.BertEncoder", "pooler", "bool"),
        ("bertbook.BertEncoder.call", "batch", "Batch"),
        ("bertbook.CausalLM.save_pretrained", "folder", "Folder"),
        ("bertbook.Tokenizer.encode", "return", "Encoding"),
        ("bertbook.load_dataset", "return", "Columns"),
    ):
        assert api_index.types(entry)[name] == expected


def test_every_type_of_the_stub_can_be_read():
    """No name with an underscore, which only checkers know."""
    entries = []
    for name, home in api_index.public_names().items():
        entries.append(f"bertbook.{name}")
        if api_index.everything()[home].is_class:
            methods = api_index.members(home)
            entries += [f"bertbook.{name}.{method}" for method in methods]
    shown = [t for e in entries for t in api_index.types(e).values()]
    assert len(shown) > 100
    assert [t for t in shown if re.search(r"(?<!\w)_\w", t)] == []
