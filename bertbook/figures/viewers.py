"""`AttentionViewer` and `SimilarityViewer`: touch a token, see its numbers.

A view is one piece of HTML with its style and its script inside, from the files
in `templates/`. It fetches nothing. The script puts the view in place of a
picture of the same numbers, which stays where scripts are dropped.
"""

import base64
import hashlib
import html
import io
import json
from functools import cache, cached_property
from importlib import resources

import numpy as np

from bertbook.figures.heatmaps import heat_map
from bertbook.figures.style import COLORS, printable

MOST_TOKENS = 128  # of one text
MOST_LETTERS = 64  # of a token, and of a title
MOST_DRAWN = 32  # of a token in a picture, whose cells need room beside it
MOST_WEIGHTS = 12 * 12 * 64 * 64  # as many keep a notebook below 1 MB
MOST_LISTED = 4096  # more weights than this travel as bytes
FINE_STEPS, COARSE_STEPS = 1000, 255  # 1.0 is divided into so many
SUM_TOLERANCE = 0.01  # rows in bfloat16 are off by less


def similarity_matrix(vectors_a, vectors_b):
    """Returns the cosine of every vector with every other.

    Args:
        vectors_a: Array of shape `(S_a, D)`.
        vectors_b: Array of shape `(S_b, D)`.

    Returns:
        Float64 array of shape `(S_a, S_b)`, from -1 to 1.

    Raises:
        ValueError: The shapes do not fit, or a vector has no direction: it is
            zero or not finite.

    Examples:
        >>> similarity_matrix([[1, 0], [3, 3]], [[0, 2], [-5, 0]]).round(3)
        array([[ 0.   , -1.   ],
               [ 0.707, -0.707]])
    """
    units_a = _unit_vectors(vectors_a, "vectors_a")
    units_b = _unit_vectors(vectors_b, "vectors_b")
    if units_a.shape[1] != units_b.shape[1]:
        raise ValueError(
            "`vectors_a` and `vectors_b` must be equally wide. Received: "
            f"{units_a.shape[1]} and {units_b.shape[1]}."
        )
    return np.clip(units_a @ units_b.T, -1.0, 1.0)  # rounding goes beyond 1


def _unit_vectors(vectors, name):
    """Returns the vectors, `(S, D)`, with length 1; `name` is for messages.

    Raises:
        ValueError: The shape is another, or a vector has no direction.
    """
    vectors = _to_numpy(vectors, "float64")
    if vectors.ndim != 2 or vectors.size == 0:
        raise ValueError(
            f"`{name}` must have shape (S, D). Received: {vectors.shape}."
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)  # (S, 1)
    bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(bad):
        raise ValueError(
            f"`{name}` must hold vectors with a direction, finite and not "
            f"zero. Received: one of length {lengths[bad[0], 0]} in row "
            f"{bad[0]}."
        )
    return vectors / lengths


def _pack_weights(weights):
    """Returns the weights as the script reads them.

    Up to `MOST_LISTED` are listed in `FINE_STEPS`; more are bytes in base64,
    in `COARSE_STEPS`. `scale` says which, and `digits` how many decimals are
    shown.
    """
    if weights.size <= MOST_LISTED:
        values = _in_steps(weights, FINE_STEPS)
        return {"scale": FINE_STEPS, "digits": 3, "values": values}
    steps = np.rint(weights * COARSE_STEPS).astype("uint8")
    values = base64.b64encode(steps.tobytes()).decode()
    return {"scale": COARSE_STEPS, "digits": 2, "values": values}


def _in_steps(values, scale):
    """Returns the values as a flat list of integers, each times `scale`."""
    return np.rint(values * scale).astype("int64").ravel().tolist()


def _counted(count, name):
    """Writes "1 head" or "2 heads"."""
    return f"{count} {name}" if count == 1 else f"{count} {name}s"


def _check_text(text, name):
    """Returns `text`, which must be a string of whole characters."""
    if not isinstance(text, str):
        raise ValueError(f"`{name}` must be a string. Received: {text!r}.")
    for index, character in enumerate(text):
        if "\ud800" <= character <= "\udfff":
            raise ValueError(
                f"`{name}` must not hold a lone surrogate. Received: "
                f"{character!r} at index {index}."
            )
    return text


def _check_tokens(tokens, name):
    """Returns `tokens` as a list of strings, at least one, not too many."""
    if isinstance(tokens, str):
        raise ValueError(
            f"`{name}` must be a list of strings. Received: {tokens!r}."
        )
    tokens = [_check_text(t, f"{name}[{i}]") for i, t in enumerate(tokens)]
    if not 1 <= len(tokens) <= MOST_TOKENS:
        raise ValueError(
            f"`{name}` must hold 1 to {MOST_TOKENS} tokens. "
            f"Received: {len(tokens)}."
        )
    return tokens


def _shown(tokens):
    """Returns tokens as a page shows them: a long one is cut, with a mark."""
    return [_cut(token, MOST_LETTERS) for token in tokens]


def _drawn(tokens):
    """Returns tokens as a picture shows them, cut like those of a page."""
    return [
        _cut(printable(_cut(token, MOST_DRAWN)), MOST_DRAWN) for token in tokens
    ]


def _cut(text, most):
    """Returns a text of at most so many characters; the mark is the last."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _check_attentions(attentions, length):
    """Returns the weights, `(L, N, S, S)`, as float32 NumPy.

    Args:
        attentions: Anything that becomes such an array.
        length: Number of tokens, S.

    Raises:
        ValueError: The shape is another, a weight is no share, a row does not
            sum to 1, or there are too many weights.
    """
    weights = _to_numpy(attentions)
    fits = weights.ndim == 4 and weights.shape[2:] == (length, length)
    if not fits or weights.size == 0:
        raise ValueError(
            "`attentions` must have shape (L, N, S, S) for one text, with S, "
            f"the number of `tokens`, {length}. Received: {weights.shape}."
        )
    if weights.size > MOST_WEIGHTS:
        raise ValueError(
            f"`attentions` must hold at most {MOST_WEIGHTS:,} weights, so "
            "that a page stays small: choose some `layers`, or a shorter "
            f"text. Received: {weights.size:,}."
        )
    _check_rows(weights)
    return weights


def _check_rows(weights):
    """Refuses weights that are not shares, and names the first bad row."""
    sums = weights.sum(axis=-1)
    good = abs(sums - 1) <= SUM_TOLERANCE  # False where a sum is nan
    good &= (weights >= 0).all(axis=-1)
    if not good.all():
        layer, head, row = np.argwhere(~good)[0]
        raise ValueError(
            "`attentions` must hold rows of weights >= 0 that sum to 1. "
            f"Received: sum {sums[layer, head, row]:.4f}, least weight "
            f"{weights[layer, head, row].min():.4f} in layer {layer}, "
            f"head {head}, row {row}."
        )


def _chosen_layers(layers, count):
    """Returns the numbers of the `layers` chosen among `count`; None is all."""
    if layers is None:
        return list(range(count))
    if not isinstance(layers, list | tuple | range) or not len(layers):
        raise ValueError(
            "`layers` must be a list of at least one number, or None. "
            f"Received: {layers!r}."
        )
    return [_layer_index(layer, count, "layers") for layer in layers]


def _layer_index(layer, count, name):
    """Returns the number of a layer from 0; -1 is the last of `count`."""
    is_whole = isinstance(layer, int | np.integer) and not isinstance(
        layer, bool
    )
    if not is_whole or not -count <= layer < count:
        raise ValueError(
            f"`{name}` must be in [{-count}, {count - 1}], without fractions. "
            f"Received: {layer!r}."
        )
    return int(layer) % count


def _text_reader(model):
    """Returns the tokenizer and the encoder of an encoder or a model.

    Raises:
        ValueError: It has no tokenizer.
    """
    encoder = getattr(model, "encoder", model)
    tokenizer = getattr(model, "tokenizer", None)
    tokenizer = tokenizer or getattr(encoder, "tokenizer", None)
    if tokenizer is None:
        raise ValueError(
            "`encoder` must have a tokenizer to read a text: set "
            "`encoder.tokenizer`. Received: an encoder without one."
        )
    return tokenizer, encoder


def _to_numpy(values, dtype="float32"):
    """Returns an array of numbers or a tensor of any backend as NumPy."""
    return np.asarray(values).astype(dtype)


__all__ = ["AttentionViewer", "SimilarityViewer", "similarity_matrix"]

PICTURE_COLORS = 256  # fewer would break the color bar into steps
MOST_NUMBERED = 12  # rows of a picture with its numbers in it
PAGE = """\
<div id="{id}" class="bertbook-viewer" data-lm-suppress-shortcuts="true">
<img alt="{alt}" width="{width}" src="data:image/png;base64,{png}">
</div>
<style>
{style}</style>
<script>
(() => {{
{script}
showViewer("{id}", {data});
}})();
</script>
"""


class _View:
    """What the views share: the forms that a notebook may show.

    A view has its short form as `repr`, `colors` of values above and below 0,
    `_data()`, which the script reads, and `picture`, a `style.Picture` for
    where no script runs.
    """

    @cached_property
    def png(self):
        """The bytes of the picture, in 256 colors: a page holds them twice."""
        from PIL import Image

        image = Image.open(io.BytesIO(self.picture.png())).convert("RGB")
        buffer = io.BytesIO()
        image.quantize(PICTURE_COLORS).save(buffer, "PNG", optimize=True)
        return buffer.getvalue()

    def to_html(self):
        """Returns the view as HTML that stands for itself, for any page."""
        data = _script_text(self._data())
        digest = hashlib.sha256(data.encode()).hexdigest()
        name = f"bertbook-{digest[:12]}"
        return PAGE.format(
            id=name,
            alt=html.escape(self.picture.alt),
            width=self.picture.metadata["width"],
            png=base64.b64encode(self.png).decode(),
            style=self._style(name),
            script=template("viewer.js"),
            data=data,
        )

    def _style(self, name):
        """Returns the rules for the element with this id."""
        style = template("viewer.css").replace("#HOST", f"#{name}")
        for sign, color in self.colors.items():
            style = style.replace(f"COLOR-{sign}", COLORS[color])
        return style

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = {
            "text/html": self.to_html(),
            "image/png": self.png,
            "text/plain": repr(self),
        }
        return data, {"image/png": self.picture.metadata}


class AttentionViewer(_View):
    """Shows where every token looks, in one head of one layer at a time.

    Args:
        tokens: S texts.
        attentions: Weights of shape `(L, N, S, S)`; each row sums to 1.
        title: Line above the view.
        layers: Optional numbers of the L layers, where not all are shown.

    Raises:
        ValueError: The shapes do not fit, a row does not sum to 1, or there
            are more weights than one page should hold.

    >>> import bertbook as bb
    >>> encoder = bb.BertEncoder.from_pretrained("mini")
    >>> bb.AttentionViewer.from_text(encoder, "The bank was shut.")
    AttentionViewer: 4 layers, 4 heads, 7 tokens
    """

    colors = {"above": "attention", "below": "attention"}

    def __init__(self, tokens, attentions, title="", *, layers=None):
        self.tokens = _check_tokens(tokens, "tokens")
        self.attentions = _check_attentions(attentions, len(self.tokens))
        self.title = _check_text(title, "title")
        count = len(self.attentions)
        layers = range(count) if layers is None else layers
        self.layers = [int(layer) for layer in layers]
        if len(self.layers) != count:
            raise ValueError(
                "`layers` must number each layer of `attentions`. "
                f"Received: {self.layers} for {count}."
            )

    @classmethod
    def from_text(cls, encoder, text, pair=None, layers=None, title=""):
        """Reads a text, or a pair, and shows where its tokens look.

        Args:
            encoder: A `BertEncoder`, or a model with one, with a tokenizer.
            text: The raw text.
            pair: The raw second text.
            layers: Which layers to show, counted from 0, or from the last one
                with -1. None shows all.
            title: Line above the view.

        Returns:
            An `AttentionViewer`.

        Raises:
            ValueError: There is no tokenizer, or a layer is out of range.
        """
        tokenizer, encoder = _text_reader(encoder)
        layers = _chosen_layers(layers, encoder.config.num_hidden_layers)
        tokens = tokenizer.encode(text, pair).tokens
        batch = tokenizer([text], None if pair is None else [pair])
        outputs = encoder(batch, output_attentions=True)
        weights = [_to_numpy(outputs["attentions"][i][0]) for i in layers]
        return cls(tokens, np.stack(weights), title, layers=layers)

    def __repr__(self):
        layers, heads, length, _ = self.attentions.shape
        sizes = (
            _counted(layers, "layer"),
            _counted(heads, "head"),
            _counted(length, "token"),
        )
        return f"AttentionViewer: {', '.join(sizes)}"

    def _data(self):
        packed = _pack_weights(self.attentions)
        return {
            "name": repr(self),
            "title": _cut(self.title, MOST_LETTERS),
            "left": _shown(self.tokens),
            "right": _shown(self.tokens),
            "labels": {"left": "looks (query)", "right": "is seen (key)"},
            "verbs": {"left": "looks most at", "right": "is seen most by"},
            "hint": "Touch a token to see its weights. Tab and the arrow keys "
            "work too.",
            "note": "The opacity of a line is the square root of its weight. "
            f"Weights are rounded to steps of 1/{packed['scale']}. Layers and "
            "heads count from 0.",
            "layers": self.layers,
            "heads": self.attentions.shape[1],
            **packed,
        }

    @cached_property
    def picture(self):
        """The first view as a `Picture`."""
        name = f"Layer {self.layers[0]}, head 0"
        title = _cut(self.title, MOST_LETTERS)
        return heat_map(
            self.attentions[0, 0],
            numbers=len(self.tokens) <= MOST_NUMBERED,
            rows=_drawn(self.tokens),
            columns=_drawn(self.tokens),
            title=f"{title}: {name}" if title else name,
            x_label="is seen (key)",
            y_label="looks (query)",
        )


class SimilarityViewer(_View):
    """Shows how similar each token of one text is to each of another.

    Args:
        tokens_a: Texts of the tokens on the left.
        vectors_a: Their vectors, one row a token, D wide.
        tokens_b: Texts of the tokens on the right.
        vectors_b: Their vectors, D wide.
        title: Line above the view.

    Raises:
        ValueError: The shapes do not fit, or a vector has no direction.

    >>> import bertbook as bb
    >>> encoder = bb.BertEncoder.from_pretrained("mini")
    >>> bb.SimilarityViewer.from_texts(encoder, "The bank was shut.", "Fire!")
    SimilarityViewer: 7 and 4 tokens
    """

    colors = {"above": "query", "below": "token"}  # as in a diverging heat_map

    def __init__(self, tokens_a, vectors_a, tokens_b, vectors_b, title=""):
        self.tokens_a = _check_tokens(tokens_a, "tokens_a")
        self.tokens_b = _check_tokens(tokens_b, "tokens_b")
        self.similarities = similarity_matrix(vectors_a, vectors_b)
        self.title = _check_text(title, "title")
        for side, tokens, count in (
            ("a", self.tokens_a, self.similarities.shape[0]),
            ("b", self.tokens_b, self.similarities.shape[1]),
        ):
            if len(tokens) != count:
                raise ValueError(
                    f"`tokens_{side}` must be as many as the rows of "
                    f"`vectors_{side}`. Received: {len(tokens)} and {count}."
                )

    @classmethod
    def from_texts(cls, encoder, text_a, text_b, layer=-1, title=""):
        """Reads two texts, each on its own, and compares their tokens.

        Args:
            encoder: A `BertEncoder`, or a model with one, with a tokenizer.
            text_a: The raw text on the left.
            text_b: The raw text on the right.
            layer: Which of the L + 1 `hidden_states` to compare: 0 is the
                embeddings, -1 the last layer.
            title: Line above the view.

        Returns:
            A `SimilarityViewer`.

        Raises:
            ValueError: There is no tokenizer, or the layer is out of range.
        """
        tokenizer, encoder = _text_reader(encoder)
        count = encoder.config.num_hidden_layers + 1
        layer = _layer_index(layer, count, "layer")
        sides = []
        for name, text in (("text_a", text_a), ("text_b", text_b)):
            _check_text(text, name)
            outputs = encoder(tokenizer([text]), output_hidden_states=True)
            vectors = _to_numpy(outputs["hidden_states"][layer][0])
            sides += [tokenizer.encode(text).tokens, vectors]
        return cls(*sides, title)

    def __repr__(self):
        left, right = self.similarities.shape
        return f"SimilarityViewer: {left} and {_counted(right, 'token')}"

    def _data(self):
        return {
            "name": repr(self),
            "title": _cut(self.title, MOST_LETTERS),
            "left": _shown(self.tokens_a),
            "right": _shown(self.tokens_b),
            "labels": {"left": "first text", "right": "second text"},
            "verbs": dict.fromkeys(("left", "right"), "is most similar to"),
            "hint": "Touch a token to see its cosine with every token of the "
            "other text. Tab and the arrow keys work too.",
            "note": f"Cosines are rounded to steps of 1/{FINE_STEPS}.",
            "scale": FINE_STEPS,
            "digits": 3,
            "values": _in_steps(self.similarities, FINE_STEPS),
        }

    @cached_property
    def picture(self):
        """All cosines as a `Picture`."""
        return heat_map(
            self.similarities,
            numbers=max(self.similarities.shape) <= MOST_NUMBERED,
            rows=_drawn(self.tokens_a),
            columns=_drawn(self.tokens_b),
            title=_cut(self.title, MOST_LETTERS)
            or "Cosine similarity of tokens",
            x_label="second text",
            y_label="first text",
            diverging=True,
        )


@cache
def template(name):
    """Returns the text of a file in `templates/`."""
    folder = resources.files("bertbook.figures") / "templates"
    return (folder / name).read_text("utf-8")


def _script_text(data):
    """Writes JSON that cannot end the script around it: no "<" is left."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c")
