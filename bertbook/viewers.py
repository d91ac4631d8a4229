"""Interactive views: touch a token and see its numbers.

A view is one piece of HTML with its style and its script inside, from the files
in `templates/`. It fetches nothing. The script puts the view in the place of a
picture of the same numbers, which stays where scripts are dropped.

Differences: none; this module has no counterpart in the paper.
"""

import base64
import hashlib
import html
import io
import json
from functools import cache, cached_property
from importlib import resources

import numpy as np

from bertbook.drawing import COLORS
from bertbook.matrices import heat_map
from bertbook.viewer_data import (
    FINE_STEPS,
    check_attentions,
    check_text,
    check_tokens,
    chosen_layers,
    counted,
    in_steps,
    layer_index,
    pack_weights,
    similarity_matrix,
    text_reader,
    to_numpy,
)

__all__ = ["AttentionViewer", "SimilarityViewer", "similarity_matrix"]

PICTURE_COLORS = 64
MOST_NUMBERED = 12  # rows of a picture with its numbers in it
PAGE = """\
<div id="{id}" class="bertbook-viewer" data-lm-suppress-shortcuts="true">
<img alt="{alt}" src="data:image/png;base64,{png}">
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


class View:
    """What the views share: the forms that a notebook may show.

    A view has its short form as `repr`, `colors` of values above and below 0,
    `_data()`, which the script reads, and `picture`, a `figures.Picture` for
    where no script runs.
    """

    @cached_property
    def png(self):
        """The bytes of the picture, in few colors: a page holds them twice."""
        from PIL import Image

        image = Image.open(io.BytesIO(self.picture.png())).convert("RGB")
        buffer = io.BytesIO()
        image.quantize(PICTURE_COLORS).save(buffer, "PNG", optimize=True)
        return buffer.getvalue()

    def to_html(self):
        """Returns the view as HTML that stands for itself, for any page."""
        data = script_text(self._data())
        digest = hashlib.sha256(data.encode()).hexdigest()
        name = f"bertbook-{digest[:12]}"
        return PAGE.format(
            id=name,
            alt=html.escape(self.picture.alt),
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
        return data, {"image/png": {"alt": self.picture.alt}}


class AttentionViewer(View):
    """Shows where every token looks, in one head of one layer at a time.

    Args:
        tokens: S texts.
        attentions: Weights of shape `(L, N, S, S)`; each row sums to 1.
        title: Line above the view.
        layers: Optional numbers of the L layers, where not all are shown.

    Raises:
        ValueError: The shapes do not fit, a row does not sum to 1, or there
            are more weights than one page should hold.
    """

    colors = {"above": "attention", "below": "attention"}

    def __init__(self, tokens, attentions, title="", *, layers=None):
        self.tokens = check_tokens(tokens, "tokens")
        self.attentions = check_attentions(attentions, len(self.tokens))
        self.title = check_text(title, "title")
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

        Raises:
            ValueError: There is no tokenizer, or a layer is out of range.
        """
        tokenizer, encoder = text_reader(encoder)
        layers = chosen_layers(layers, encoder.config.num_hidden_layers)
        tokens = tokenizer.encode(text, pair).tokens
        batch = tokenizer([text], None if pair is None else [pair])
        outputs = encoder(batch, output_attentions=True)
        weights = [to_numpy(outputs["attentions"][i][0]) for i in layers]
        return cls(tokens, np.stack(weights), title, layers=layers)

    def __repr__(self):
        layers, heads, length, _ = self.attentions.shape
        sizes = (
            counted(layers, "layer"),
            counted(heads, "head"),
            counted(length, "token"),
        )
        return f"AttentionViewer: {', '.join(sizes)}"

    def _data(self):
        packed = pack_weights(self.attentions)
        return {
            "name": repr(self),
            "title": self.title,
            "left": self.tokens,
            "right": self.tokens,
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
        return heat_map(
            self.attentions[0, 0],
            numbers=len(self.tokens) <= MOST_NUMBERED,
            rows=self.tokens,
            columns=self.tokens,
            title=f"{self.title}: {name}" if self.title else name,
            x_label="is seen (key)",
            y_label="looks (query)",
        )


class SimilarityViewer(View):
    """Shows how similar each token of one text is to each of another.

    Args:
        tokens_a: Texts of the tokens on the left.
        vectors_a: Their vectors, one row a token, D wide.
        tokens_b: Texts of the tokens on the right.
        vectors_b: Their vectors, D wide.
        title: Line above the view.

    Raises:
        ValueError: The shapes do not fit, or a vector has no direction.
    """

    colors = {"above": "query", "below": "token"}  # as in a diverging heat_map

    def __init__(self, tokens_a, vectors_a, tokens_b, vectors_b, title=""):
        self.tokens_a = check_tokens(tokens_a, "tokens_a")
        self.tokens_b = check_tokens(tokens_b, "tokens_b")
        self.similarities = similarity_matrix(vectors_a, vectors_b)
        self.title = check_text(title, "title")
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

        Raises:
            ValueError: There is no tokenizer, or the layer is out of range.
        """
        tokenizer, encoder = text_reader(encoder)
        count = encoder.config.num_hidden_layers + 1
        layer = layer_index(layer, count, "layer")
        sides = []
        for name, text in (("text_a", text_a), ("text_b", text_b)):
            check_text(text, name)
            outputs = encoder(tokenizer([text]), output_hidden_states=True)
            vectors = to_numpy(outputs["hidden_states"][layer][0])
            sides += [tokenizer.encode(text).tokens, vectors]
        return cls(*sides, title)

    def __repr__(self):
        left, right = self.similarities.shape
        return f"SimilarityViewer: {left} and {counted(right, 'token')}"

    def _data(self):
        return {
            "name": repr(self),
            "title": self.title,
            "left": self.tokens_a,
            "right": self.tokens_b,
            "labels": {"left": "first text", "right": "second text"},
            "verbs": dict.fromkeys(("left", "right"), "is most similar to"),
            "hint": "Touch a token to see its cosine with every token of the "
            "other text. Tab and the arrow keys work too.",
            "note": f"Cosines are rounded to steps of 1/{FINE_STEPS}.",
            "scale": FINE_STEPS,
            "digits": 3,
            "values": in_steps(self.similarities, FINE_STEPS),
        }

    @cached_property
    def picture(self):
        """All cosines as a `Picture`."""
        return heat_map(
            self.similarities,
            numbers=max(self.similarities.shape) <= MOST_NUMBERED,
            rows=self.tokens_a,
            columns=self.tokens_b,
            title=self.title or "Cosine similarity of tokens",
            x_label="second text",
            y_label="first text",
            diverging=True,
        )


@cache
def template(name):
    """Returns the text of a file in `templates/`."""
    return (resources.files("bertbook") / "templates" / name).read_text("utf-8")


def script_text(data):
    """Writes JSON that cannot end the script around it: no "<" is left."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c")
