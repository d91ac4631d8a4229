"""The interactive views: their numbers, their forms, what they refuse."""

import base64
import hashlib
import html
import io
import json
import re
import tracemalloc
from html.parser import HTMLParser

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="needs matplotlib: the pictures")

from PIL import Image

from bertbook.config import BertConfig
from bertbook.figures import viewers
from bertbook.figures.style import COLORS
from bertbook.figures.viewers import (
    AttentionViewer,
    SimilarityViewer,
    similarity_matrix,
)
from bertbook.model.encoder import BertEncoder
from bertbook.text.tokenizer import Tokenizer

L, N, S, T, D = 2, 3, 5, 7, 11  # all different: a swapped axis cannot hide
TOKENS = ["[CLS]", "red", "##dish", ".", "[SEP]"]
OTHERS = ["[CLS]", "blue", "and", "green", "sky", ".", "[SEP]"]
HOSTILE = "</script><b>x</b><!--<script>$&\"'\u2028"


def soft(*shape, spread=2.0):
    """Returns random rows that sum to 1."""
    rng = np.random.default_rng(0)
    scores = np.exp(spread * rng.normal(size=shape))
    return scores / scores.sum(axis=-1, keepdims=True)


def vectors(count, seed=0):
    return np.random.default_rng(seed).normal(size=(count, D))


def attention_viewer(**changes):
    given = {"tokens": TOKENS, "attentions": soft(L, N, S, S)}
    return AttentionViewer(**given | changes)


def similarity_viewer(**changes):
    given = {
        "tokens_a": TOKENS,
        "vectors_a": vectors(S),
        "tokens_b": OTHERS,
        "vectors_b": vectors(T, 1),
    }
    return SimilarityViewer(**given | changes)


@pytest.fixture(scope="module", params=[attention_viewer, similarity_viewer])
def view(request):
    """Each of the two views in turn."""
    return request.param()


@pytest.fixture(scope="module")
def page(view):
    """The view as HTML."""
    return view.to_html()


@pytest.fixture(scope="module")
def encoder():
    tokenizer = Tokenizer.from_pretrained("mini")
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=12,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=20,
        max_position_embeddings=24,
    )
    encoder = BertEncoder(config)
    encoder.tokenizer = tokenizer
    return encoder


def payload(page):
    """Returns what the script of a page is called with: the id, the data."""
    call = re.search(r'showViewer\("([\w-]+)", (.*)\);\n\}\)\(\);', page)
    return call[1], json.loads(call[2])


def data_of(view):
    """Returns what the script of a view reads, without its picture."""
    return json.loads(viewers._script_text(view._data()))


def pixels(png):
    """Returns an image as an array, `(height, width, 3)`."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    return np.asarray(image, "float32")


def decoded(data):
    """Returns the numbers of a payload, flat, as the script reads them."""
    values = data["values"]
    if isinstance(values, str):
        values = np.frombuffer(base64.b64decode(values), "uint8")
    return np.array(values) / data["scale"]


class Elements(HTMLParser):
    """Collects the elements of a page with their attributes."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


# The cosines.


def test_similarity_matches_the_definition():
    a, b = vectors(S), vectors(T, 1)
    expected = np.zeros((S, T))
    for i, j in np.ndindex(S, T):
        product = sum(a[i, d] * b[j, d] for d in range(D))
        squares = sum(a[i, d] ** 2 for d in range(D))
        squares *= sum(b[j, d] ** 2 for d in range(D))
        expected[i, j] = product / np.sqrt(squares)
    np.testing.assert_allclose(similarity_matrix(a, b), expected, atol=1e-12)


def test_similarity_matches_keras():
    from bertbook.runtime import keras, ops

    a, b = vectors(S).astype("float32"), vectors(T, 1).astype("float32")
    loss = keras.losses.cosine_similarity(a[:, None], b[None], axis=-1)
    np.testing.assert_allclose(
        similarity_matrix(a, b), -ops.convert_to_numpy(loss), atol=1e-6
    )


def test_similarity_takes_tensors():
    from bertbook.runtime import ops

    a, b = vectors(S).astype("float32"), vectors(T, 1).astype("float32")
    tensors = ops.convert_to_tensor(a), ops.convert_to_tensor(b)
    np.testing.assert_array_equal(
        similarity_matrix(*tensors), similarity_matrix(a, b)
    )


def test_equal_vectors_are_most_similar():
    a = vectors(S)
    similarities = similarity_matrix(a, 3 * a)
    np.testing.assert_allclose(np.diag(similarities), 1, atol=1e-12)
    np.testing.assert_allclose(similarities, similarities.T, atol=1e-12)
    assert abs(similarities).max() <= 1
    assert similarity_matrix(a, -a).min() == pytest.approx(-1)


def test_similarity_matrix_refuses_bad_vectors():
    for a, b, message in (
        (np.ones(D), vectors(T), r"`vectors_a`.*\(S, D\).*Received: \(11,\)"),
        (vectors(S), np.ones((0, D)), r"`vectors_b`.*Received: \(0, 11\)"),
        (vectors(S), np.ones((T, 4)), "equally wide. Received: 11 and 4"),
        (np.eye(3, 4, k=1)[::-1] * [0, 0, 1, 1], np.eye(4), "0.0 in row 2"),
        (np.array([[1.0, np.nan]]), np.eye(2), "Received: .*nan in row 0"),
        (np.array([[1.0, np.inf]]), np.eye(2), "Received: .*inf in row 0"),
    ):
        with pytest.raises(ValueError, match=message):
            similarity_matrix(a, b)


# The forms of a view.


def test_the_bundle_has_three_forms(view, page):
    data, metadata = view._repr_mimebundle_()
    assert data == {
        "text/html": page,
        "image/png": view.png,
        "text/plain": repr(view),
    }
    assert metadata == {"image/png": view.picture.metadata}
    alt, width = html.escape(view.picture.alt), view.picture.metadata["width"]
    assert f'<img alt="{alt}" width="{width}" src=' in page


def test_repr_counts_layers_heads_and_tokens():
    assert repr(attention_viewer()) == (
        "AttentionViewer: 2 layers, 3 heads, 5 tokens"
    )
    one = AttentionViewer(["a"], np.ones((1, 1, 1, 1)))
    assert repr(one) == "AttentionViewer: 1 layer, 1 head, 1 token"
    assert repr(similarity_viewer()) == "SimilarityViewer: 5 and 7 tokens"


def test_the_same_input_gives_the_same_bytes_and_other_input_another_id():
    same = {"tokens_a": TOKENS, "tokens_b": TOKENS, "vectors_b": vectors(S)}
    read = []
    for make, others in (
        (attention_viewer, {"title": "another"}),
        (similarity_viewer, {"title": "another"}),
        (similarity_viewer, same),
    ):
        read.append(viewers._script_text(make(**others)._data()))
    for make in (attention_viewer, similarity_viewer):
        page = make().to_html()
        assert page == make().to_html()
        name, data = payload(page)
        assert data == data_of(make())
        read.append(viewers._script_text(make()._data()))
        digest = hashlib.sha256(read[-1].encode()).hexdigest()
        assert name == f"bertbook-{digest[:12]}"
    assert len(set(read)) == len(read)


def test_the_page_holds_the_picture_with_its_text(view, page):
    (image,) = (a for tag, a in Elements(page).found if tag == "img")
    assert image["alt"] == view.picture.alt
    kind, _, coded = image["src"].partition(",")
    assert kind == "data:image/png;base64"
    assert base64.b64decode(coded) == view.png
    assert view.png.startswith(b"\x89PNG")


def test_few_colors_keep_the_picture(view):
    png = view.picture.png()
    exact, small = pixels(png), pixels(view.png)
    assert exact.shape == small.shape
    assert (small[0, 0] == 255).all()
    assert abs(exact - small).mean() < 2  # of 255
    assert len(view.png) < len(png)


def test_the_color_bar_has_no_steps():
    """More rows than have room for numbers: a bar of colors says them."""
    for count in (20, 30):
        view = AttentionViewer(["x"] * count, soft(1, 1, count, count))
        exact, small = pixels(view.picture.png()), pixels(view.png)
        assert abs(exact - small).max() < 24  # of 255; 64 colors: 42


def test_the_page_fetches_nothing_and_names_one_element(page):
    addresses = re.findall(r"(?:https?:)?//[\w.]+\.\w+[^\s\"]*", page)
    assert set(addresses) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|require\(|\bimport\b|url\(", page)
    elements = Elements(page).found
    assert [tag for tag, _ in elements] == ["div", "img", "style", "script"]
    assert elements[0][1]["id"] == payload(page)[0]


def test_every_rule_stays_inside_its_view(page):
    name, _ = payload(page)
    style = re.search(r"<style>(.*)</style>", page, re.DOTALL)[1]
    style = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    rules = re.findall(r"([^{};]+)\{", style)
    selectors = [s.strip() for rule in rules for s in rule.split(",")]
    selectors = [s for s in selectors if not s.startswith("@container")]
    assert selectors
    assert all(s.startswith(f"#{name}") for s in selectors)
    assert not re.search(r"HOST|COLOR-", style)


def test_the_colors_are_the_books(view, page):
    is_one = isinstance(view, AttentionViewer)
    for color in ("attention",) if is_one else ("query", "token"):
        assert COLORS[color] in page


def test_the_script_writes_text_and_never_html():
    script = viewers.template("viewer.js")
    assert "textContent" in script
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|\.write", script)
    assert "aria-label" in script
    assert "aria-live" in script


# What the script reads.


def test_few_weights_are_listed():
    view = attention_viewer()
    data = data_of(view)
    assert (data["scale"], data["digits"]) == (1000, 3)
    assert (data["left"], data["right"]) == (TOKENS, TOKENS)
    assert (data["layers"], data["heads"]) == ([0, 1], N)
    expected = view.attentions.ravel()
    np.testing.assert_allclose(decoded(data), expected, atol=0.5001e-3)
    assert "1/1000" in data["note"]


def test_many_weights_are_bytes():
    weights = soft(12, 12, 64, 64, spread=4.0)
    view = AttentionViewer([str(i) for i in range(64)], weights)
    page = view.to_html()
    _, data = payload(page)
    assert (data["scale"], data["digits"]) == (255, 2)
    np.testing.assert_allclose(
        decoded(data).reshape(weights.shape), weights, atol=0.5001 / 255
    )
    assert "1/255" in data["note"]
    assert len(page) + len(view.png) * 4 / 3 < 1_000_000


def test_the_form_changes_at_the_limit():
    for heads in (1, 2):
        view = AttentionViewer(["x"] * 64, soft(1, heads, 64, 64))
        assert isinstance(data_of(view)["values"], list) == (heads == 1)
    assert viewers.MOST_LISTED == 64 * 64


def test_a_single_weight_is_in_its_place():
    weights = np.zeros((L, N, S, S))
    weights[..., 4] = 1
    weights[1, 2, 3] = [0, 0.25, 0, 0, 0.75]
    data = data_of(attention_viewer(attentions=weights))
    place = ((1 * N + 2) * S + 3) * S + 1  # as `valueIn` of the script
    assert data["values"][place] == 250
    assert np.count_nonzero(np.array(data["values"]) == 250) == 1


def test_cosines_are_listed():
    view = similarity_viewer()
    data = data_of(view)
    assert (data["left"], data["right"]) == (TOKENS, OTHERS)
    assert "heads" not in data
    np.testing.assert_allclose(
        decoded(data).reshape(S, T), view.similarities, atol=0.5001e-3
    )
    assert min(data["values"]) < 0


def test_a_hostile_token_stays_text():
    tokens = [*TOKENS[:-1], HOSTILE]
    view = attention_viewer(tokens=tokens, title=HOSTILE)
    page = view.to_html()
    assert page.count("</script") == page.count("<script") == 1
    assert "<b>" not in page
    assert "<!--" not in page
    assert len(Elements(page).found) == 4
    _, data = payload(page)
    assert data["left"] == tokens
    assert data["title"] == HOSTILE


def test_a_token_without_a_glyph_is_no_warning():
    view = attention_viewer(tokens=["[CLS]", "日本", "😀", "$x$", "[SEP]"])
    assert view.png


# From texts.


def test_from_text_shows_what_the_encoder_gives(encoder):
    pair = "Is it?", "It is red."
    view = AttentionViewer.from_text(encoder, *pair, title="T")
    outputs = encoder(
        encoder.tokenizer(pair[:1], pair[1:]), output_attentions=True
    )
    expected = [np.asarray(layer)[0] for layer in outputs["attentions"]]
    np.testing.assert_array_equal(view.attentions, expected)
    assert view.tokens == encoder.tokenizer.encode(*pair).tokens
    assert view.tokens.count("[SEP]") == 2
    assert view.title == "T"
    assert view.layers == [0, 1, 2]


def test_from_text_picks_layers(encoder):
    every = AttentionViewer.from_text(encoder, "It is red.")
    some = AttentionViewer.from_text(encoder, "It is red.", layers=[-1, 0])
    np.testing.assert_array_equal(some.attentions, every.attentions[[2, 0]])
    assert data_of(some)["layers"] == [2, 0]
    assert some.picture.alt.startswith("Layer 2, head 0")


def test_from_texts_compares_a_layer(encoder):
    texts = "It is red.", "The red sky is."
    states = [
        encoder(encoder.tokenizer([text]), output_hidden_states=True)
        for text in texts
    ]
    for layer, place in ((0, 0), (2, 2), (-1, 3)):
        view = SimilarityViewer.from_texts(encoder, *texts, layer=layer)
        vectors = [np.asarray(s["hidden_states"][place])[0] for s in states]
        np.testing.assert_array_equal(
            view.similarities, similarity_matrix(*vectors)
        )
        assert view.tokens_a[0] == view.tokens_b[0] == "[CLS]"
    same = SimilarityViewer.from_texts(encoder, texts[0], texts[0])
    np.testing.assert_allclose(np.diag(same.similarities), 1, atol=1e-6)


def test_a_model_with_an_encoder_will_do(encoder):
    class Model:
        tokenizer = encoder.tokenizer

    Model.encoder = encoder
    view = AttentionViewer.from_text(Model(), "It is red.")
    expected = AttentionViewer.from_text(encoder, "It is red.")
    assert data_of(view) == data_of(expected)


# What is refused.


def short_row():
    weights = soft(L, N, S, S)
    weights[1, 2, 3] *= 0.5
    return weights


def negative():
    weights = soft(L, N, S, S)
    weights[0, 1, 2, :2] = [-0.25, weights[0, 1, 2, :2].sum() + 0.25]
    return weights


def not_a_number():
    weights = soft(L, N, S, S)
    weights[0, 2, 4, 1] = np.nan
    return weights


def test_attention_viewer_refuses_bad_arguments():
    for changes, message in (
        ({"tokens": "red"}, "`tokens` must be a list of strings.*'red'"),
        ({"tokens": ["a", 2]}, r"`tokens\[1\]` must be a string. Received: 2"),
        ({"tokens": ["\ud800"]}, r"`tokens\[0\]`.*surrogate.*index 0"),
        ({"tokens": []}, "`tokens` must hold 1 to 128 tokens. Received: 0"),
        ({"tokens": ["a"] * 129}, "`tokens`.*Received: 129"),
        ({"tokens": TOKENS[:4]}, r"`tokens`, 4. Received: \(2, 3, 5, 5\)"),
        ({"title": None}, "`title` must be a string. Received: None"),
        ({"attentions": soft(N, S, S)}, r"`attentions`.*\(3, 5, 5\)"),
        ({"attentions": soft(L, 1, N, S, S)}, r"Received: \(2, 1, 3, 5, 5\)"),
        ({"attentions": np.ones((0, N, S, S))}, r"Received: \(0, 3, 5, 5\)"),
        ({"attentions": short_row()}, "sum 0.5.*layer 1, head 2, row 3"),
        ({"attentions": negative()}, "weight -0.25.*layer 0, head 1, row 2"),
        ({"attentions": not_a_number()}, "sum nan.*layer 0, head 2, row 4"),
        ({"layers": [0]}, r"`layers`.*Received: \[0\] for 2"),
    ):
        with pytest.raises(ValueError, match=message):
            attention_viewer(**changes)


def test_attention_viewer_refuses_more_than_a_page():
    weights = np.broadcast_to(1 / 128, (3, 13, 128, 128))
    with pytest.raises(ValueError, match=r"589,824.*Received: 638,976"):
        attention_viewer(tokens=["a"] * 128, attentions=weights)


def test_similarity_viewer_refuses_bad_arguments():
    for changes, message in (
        ({"tokens_a": OTHERS}, "`tokens_a`.*`vectors_a`. Received: 7 and 5"),
        ({"tokens_b": TOKENS}, "`tokens_b`.*`vectors_b`. Received: 5 and 7"),
        ({"tokens_b": "blue"}, "`tokens_b` must be a list"),
        ({"vectors_a": np.zeros((S, D))}, "`vectors_a`.*0.0 in row 0"),
        ({"title": 3}, "`title` must be a string. Received: 3"),
    ):
        with pytest.raises(ValueError, match=message):
            similarity_viewer(**changes)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([3], r"`layers` must be in \[-3, 2\].*Received: 3"),
        ([0, -4], r"`layers` must be in \[-3, 2\].*Received: -4"),
        ([True], "`layers`.*Received: True"),
        ([0.5], "`layers`.*Received: 0.5"),
        ([], r"`layers`.*at least one.*Received: \[\]"),
        (1, "`layers` must be a list.*Received: 1"),
    ],
)
def test_from_text_refuses_unknown_layers(encoder, layers, message):
    with pytest.raises(ValueError, match=message):
        AttentionViewer.from_text(encoder, "It is red.", layers=layers)


def test_from_texts_refuses_an_unknown_layer(encoder):
    for layer in (4, -5, 1.0, None):
        message = rf"`layer` must be in \[-4, 3\].*Received: {layer}"
        with pytest.raises(ValueError, match=message):
            SimilarityViewer.from_texts(encoder, "red", "blue", layer=layer)


def test_an_encoder_without_a_tokenizer_is_refused(encoder):
    mute = BertEncoder(encoder.config)
    message = "`encoder` must have a tokenizer"
    with pytest.raises(ValueError, match=message):
        AttentionViewer.from_text(mute, "red")
    with pytest.raises(ValueError, match=message):
        SimilarityViewer.from_texts(mute, "red", "blue")


def test_texts_that_are_none_are_refused(encoder):
    with pytest.raises(ValueError, match="`text` must be a string"):
        AttentionViewer.from_text(encoder, ["red"])
    with pytest.raises(ValueError, match="`text_b` must be a string"):
        SimilarityViewer.from_texts(encoder, "red", None)


LONG = ["a" * 1_000_000, "文" * 500, "x" * 64]


def test_a_long_token_and_title_are_cut_with_a_mark_on_a_page():
    title = "t" * 1_000_000
    for view in (
        AttentionViewer(LONG, np.full((1, 1, 3, 3), 1 / 3), title),
        SimilarityViewer(LONG, np.eye(3), LONG, np.eye(3), title),
    ):
        tracemalloc.start()
        page = view.to_html()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 50e6
        assert len(page) < 200_000
        data = view._data()
        assert data["left"] == ["a" * 63 + "…", "文" * 63 + "…", "x" * 64]
        assert data["title"] == "t" * 63 + "…"
        assert len(view.picture.alt) < 1_000


def test_a_token_that_a_picture_has_no_room_for_is_cut_there():
    tokens = ["W" * 64] * 3
    view = SimilarityViewer(tokens, np.eye(3), tokens, np.eye(3))
    assert view._data()["left"] == tokens
    assert "W" * 31 + "…" in view.picture.alt
    assert view.png
