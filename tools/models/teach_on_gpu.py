"""Teaches `mini` what all-MiniLM-L6-v2 says of words and texts, on one GPU.

    KERAS_BACKEND=jax python tools/models/teach_on_gpu.py START TEACHER OUT \
        [FOLDER]

START is the folder of a model, TEACHER that of all-MiniLM-L6-v2, FOLDER what
`tools/models/mix_corpus.py` makes, `local/long` if it is not named. OUT then
holds log.csv and the model, in float16.

Both models read the same text, each in its own pieces; the student reads it
with tokens hidden. The vector of a word is the mean of its pieces. The
student's vectors of words go through a matrix, thrown away at the end, and
shall point where the teacher's do, those of its fourth layer and of its last;
the pooled vector of [CLS] goes through another one, and shall point where the
teacher's vector of the text does. The student goes on to guess the hidden
tokens, so that its head stays alive.
"""

import dataclasses
import sys
from pathlib import Path

import numpy as np

from bertbook.pretraining.corpus import read_shard
from bertbook.pretraining.examples import assemble
from bertbook.pretraining.masking import Pieces
from bertbook.text.tokenizer import Tokenizer
from bertbook.text.wordpiece import CONTINUATION
from train_on_gpu import Part, Run, hide, mean_nats

STARTS = 1 << 15  # added to the id of a piece that starts a word
LONG, SHORT = 128, 48  # tokens of a row: of a text, and of a single sentence
SENTENCES = 2  # rows of single sentences beside each text
LEAST_WORDS = 3  # of a sentence
LAYERS = 4, 6  # whose vectors of words the student follows
SHARES = {"mlm_loss": 0.5, "word_loss": 4.0, "text_loss": 2.0}
MASK_RATE = 0.15
PART = Part(
    tokens=200_700_000,
    begin=1e-3,
    end=0.0,
    warmup=300,
    batch_size=128,
    length=LONG + SENTENCES * SHORT,
    chunk=100,
    seed=0,
)


def main():
    """Teaches a model."""
    start, teacher, out = map(Path, sys.argv[1:4])
    folder = Path(sys.argv[4] if len(sys.argv) > 4 else "local/long")
    lesson = Lesson(folder, out, start, teacher)
    lesson.train(PART)
    lesson.save(out / "model")
    lesson.close()


@dataclasses.dataclass(frozen=True)
class TextDrawer:
    """Draws texts and sentences of a shard: what a worker does."""

    tokenizer: Tokenizer
    teacher: Tokenizer

    def __call__(self, path, part, seed):
        """Returns rows in the pieces of both models.

        Returns:
            `ids`, `(n, LONG)`, and `sentence_ids`, `(n, SENTENCES, SHORT)`,
            `STARTS` added where a word starts; `lengths`, `(n,)`, and
            `sentence_lengths`, `(n, SENTENCES)`; the same with `teacher_`
            before the name.
        """
        rng = np.random.default_rng(seed)
        shard = read_shard(path)
        tokens = shard.tokens.astype("int64")
        pieces = Pieces.of(self.tokenizer)
        starts = ~pieces.continues[tokens]
        starts[shard.sentences[:-1]] = True
        words = np.append(np.flatnonzero(starts), len(tokens))
        sentences = np.searchsorted(words, shard.sentences)  # in words
        theirs = translate(tokens, words, self.tokenizer, self.teacher)
        both = (
            ("", tokens, words, pieces),
            ("teacher_", *theirs, Pieces.of(self.teacher)),
        )
        bounds = words, theirs[1]
        texts = cut_texts(bounds, sentences, shard.documents)
        alone = cut_sentences(bounds, sentences)
        texts = texts[: len(alone) // SENTENCES]
        chosen = rng.permutation(len(alone))[: len(texts) * SENTENCES]
        rows = {}
        for name, *language in both:
            ids, lengths = lay_out(texts, LONG, *language)
            rows |= {f"{name}ids": ids, f"{name}lengths": lengths}
            ids, lengths = lay_out(alone[chosen], SHORT, *language)
            shape = len(texts), SENTENCES
            rows[f"{name}sentence_ids"] = ids.reshape(*shape, SHORT)
            rows[f"{name}sentence_lengths"] = lengths.reshape(shape)
        return rows


def translate(tokens, words, tokenizer, teacher):
    """Writes words in the pieces of the teacher.

    Args:
        tokens: Ids of the student, `(n,)`.
        words: Where each word begins in them, and at the end n.
        tokenizer: The student's.
        teacher: The teacher's.

    Returns:
        Ids of the teacher, `(m,)`, and where each word begins in them.
    """
    lengths = np.diff(words)
    widest = int(lengths.max())
    table = np.zeros((len(lengths), widest), "uint16")
    table[np.arange(widest) < lengths[:, None]] = tokens
    _, first, number = np.unique(
        table.view(f"V{2 * widest}").ravel(),
        return_index=True,
        return_inverse=True,
    )
    texts = [
        "".join(
            tokenizer.vocabulary[i].removeprefix(CONTINUATION)
            for i in tokens[words[place] : words[place + 1]]
        )
        for place in first
    ]
    # What the student cannot read, the teacher shall not read either.
    special = set(tokenizer.special_tokens)
    encoded = teacher.encode_pieces(["" if t in special else t for t in texts])
    rows = [list(ids) or [teacher.unk_token_id] for ids in encoded]
    flat = np.concatenate(rows)
    sizes = np.array([len(row) for row in rows])
    begins = np.cumsum(sizes) - sizes
    counts = sizes[number]
    ends = np.cumsum(counts)
    inner = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
    return flat[np.repeat(begins[number], counts) + inner], np.append(0, ends)


def last_words(bounds, length):
    """Returns for each word the end of the most words that both can read.

    Args:
        bounds: Of each model, where the words begin in its pieces.
        length: Tokens of a row, [CLS] and [SEP] counted.
    """
    room = length - 2
    ends = [np.searchsorted(b, b[:-1] + room, "right") - 1 for b in bounds]
    return np.minimum(*ends)


def cut_sentences(bounds, sentences):
    """Returns the words of every sentence, cut to a row, `(n, 2)`."""
    starts, stops = sentences[:-1], sentences[1:]
    spans = np.stack([starts, stops], axis=1)[stops - starts >= LEAST_WORDS]
    ends = last_words(bounds, SHORT)[spans[:, 0]]
    return np.stack([spans[:, 0], np.minimum(spans[:, 1], ends)], axis=1)


def cut_texts(bounds, sentences, documents):
    """Cuts documents into as many whole sentences as rows have room for.

    Returns:
        The first word of each row, and the word after its last, `(n, 2)`.
    """
    most = last_words(bounds, LONG)
    spans = []
    for here, end in zip(documents[:-1], documents[1:], strict=True):
        while here < end:
            start = sentences[here]
            stop = here + 1
            while stop < end and sentences[stop + 1] <= most[start]:
                stop += 1
            spans.append((start, min(sentences[stop], most[start])))
            here = stop
    return np.array([span for span in spans if span[1] > span[0]])


def lay_out(spans, length, tokens, words, pieces):
    """Returns rows of ids, word starts marked, and how long each is.

    Args:
        spans: First word and end of each row, `(n, 2)`.
        length: Tokens of a row.
        tokens: Ids, `(m,)`.
        words: Where each word begins in them.
        pieces: The facts of their vocabulary.
    """
    marked = tokens.copy()
    marked[words[:-1]] += STARTS
    starts, ends = words[spans].T
    rows = assemble(
        marked, np.stack([starts, ends, ends, ends], axis=1), length, pieces
    )
    lengths = rows["attention_mask"].sum(axis=1).astype("int32")
    return rows["input_ids"].astype("uint16"), lengths


class Lesson(Run):
    """A student, its teacher, and the texts that both read.

    Args:
        folder: What `mix_corpus.py` has made.
        out: Where the log goes.
        start: The folder of the student's first weights.
        teacher: The folder of the teacher.
    """

    def __init__(self, folder, out, start, teacher):
        import bertbook as bb

        self.teacher = bb.BertEncoder.from_pretrained(
            teacher, dtype="mixed_bfloat16"
        )
        self.together = self.means = None
        super().__init__(folder, out, start, MASK_RATE)

    def learner(self):
        """Returns the student, its maps and its teacher."""
        if self.together is None:
            self.together = put_together(self.model, self.teacher)
        return self.together

    def drawer(self):
        """Returns what draws the rows of a shard."""
        return TextDrawer(self.tokenizer, self.teacher.tokenizer)

    def begin(self, seed):
        """Looks at one batch for the mean vectors of the teacher, too."""
        import jax

        super().begin(seed)
        rows = next(self.rows.chunks(dataclasses.replace(PART, chunk=1)))
        texts, _ = split_rows({name: array[0] for name, array in rows.items()})
        self.means = jax.jit(self.mean_vectors)(*self.state[:2], texts)

    def mean_vectors(self, weights, others, rows):
        """Returns the mean vectors of words, `(2, D)`, and of texts, `(D,)`."""
        batch = hide(
            plain_rows(rows), self.pieces, self.mask_rate, self.state[3]
        )
        outputs, _ = self.together.stateless_call(
            weights, others, batch | teacher_batch(rows)
        )
        words, texts, used = read_teacher(outputs, rows)
        mean = (words * used[..., None, None]).sum((0, 1)) / used.sum()
        return mean, texts.mean(0)

    def loss(self, weights, others, rows, key):
        """Returns the loss of a step, and what the log wants to know."""
        import jax

        found = []
        for some in split_rows(rows):
            key, here = jax.random.split(key)
            facts, others = self.compare(weights, others, some, here)
            found.append(facts)
        facts = {n: sum(f[n] for f in found) / len(found) for n in SHARES}
        loss = sum(share * facts[name] for name, share in SHARES.items())
        return loss, (others, facts)

    def compare(self, weights, others, rows, key):
        """Returns how far student and teacher are apart, and what changed."""
        import jax
        import jax.numpy as jnp

        batch = hide(plain_rows(rows), self.pieces, self.mask_rate, key)
        outputs, others = self.together.stateless_call(
            weights, others, batch | teacher_batch(rows), training=True
        )
        words, texts, theirs = jax.lax.stop_gradient(
            read_teacher(outputs, rows)
        )
        shares, ours = mean_matrix(rows["ids"] >= STARTS, rows["lengths"])
        used = ours * theirs
        guesses = jnp.einsum(
            "bws,bsd->bwd", shares, outputs["words"].astype("float32")
        ).reshape(words.shape)
        match = cosines(guesses, words - self.means[0]).mean(-1)  # (B, W)
        text_match = cosines(outputs["text"], texts - self.means[1])
        return {
            "mlm_loss": mean_nats(outputs, batch),
            "word_loss": 1 - (match * used).sum() / used.sum(),
            "text_loss": 1 - text_match.mean(),
        }, others

    def score_batch(self, weights, others, batch):
        """Returns sums over a held-out batch, from the student alone."""
        count = len(self.model.trainable_variables)  # the maps come after
        return super().score_batch(weights[:count], [], batch)


def plain_rows(rows):
    """Returns rows of the student as `hide` takes them."""
    ids, lengths = rows["ids"].astype("int32") % STARTS, rows["lengths"]
    return {"ids": ids, "firsts": lengths, "lengths": lengths}


def teacher_batch(rows):
    """Returns rows of the teacher as a batch, by the name "teacher"."""
    import jax.numpy as jnp

    ids = rows["teacher_ids"].astype("int32") % STARTS
    is_real = jnp.arange(ids.shape[1]) < rows["teacher_lengths"][:, None]
    batch = {
        "input_ids": ids,
        "token_type_ids": jnp.zeros_like(ids),
        "attention_mask": is_real.astype("int32"),
    }
    return {"teacher": batch}


def read_teacher(outputs, rows):
    """Returns what the teacher says.

    Returns:
        Vectors of words, `(B, W, 2, D)`; directions of texts, `(B, D)`;
        which words there are, `(B, W)`.
    """
    import jax.numpy as jnp

    marked, lengths = rows["teacher_ids"], rows["teacher_lengths"]
    shares, used = mean_matrix(marked >= STARTS, lengths)
    layers = [outputs["teacher"][number] for number in LAYERS]
    words = jnp.stack(
        [jnp.einsum("bws,bsd->bwd", shares, layer) for layer in layers], 2
    )
    real = jnp.arange(marked.shape[1]) < lengths[:, None]
    total = jnp.einsum(
        "bs,bsd->bd", real.astype("float32"), layers[-1].astype("float32")
    )
    return words, directions(total / lengths[:, None]), used


def split_rows(rows):
    """Returns the rows of texts, and those of sentences."""
    texts = {n: array for n, array in rows.items() if "sentence" not in n}
    sentences = {
        name.replace("sentence_", ""): array.reshape(-1, *array.shape[2:])
        for name, array in rows.items()
        if "sentence" in name
    }
    return texts, sentences


def mean_matrix(starts, lengths):
    """Returns the matrix that takes the mean of each word's pieces.

    Args:
        starts: Where a word starts, `(B, S)`.
        lengths: Tokens of each row, [CLS] and [SEP] counted, `(B,)`.

    Returns:
        Shares, `(B, S - 2, S)`, and which words there are, `(B, S - 2)`.
    """
    import jax
    import jax.numpy as jnp

    place = jnp.arange(starts.shape[1])
    is_text = (place > 0) & (place < lengths[:, None] - 1)
    word = jnp.where(is_text, jnp.cumsum(starts, axis=1) - 1, -1)
    count = starts.shape[1] - 2
    shares = jax.nn.one_hot(word, count, axis=1, dtype="float32")
    sizes = shares.sum(-1, keepdims=True)
    used = (sizes[..., 0] > 0).astype("float32")
    return shares / jnp.maximum(sizes, 1.0), used


def directions(vectors):
    """Returns vectors of length one, float32."""
    import jax
    import jax.numpy as jnp

    vectors = vectors.astype("float32")
    squares = jnp.sum(vectors * vectors, -1, keepdims=True)
    return vectors * jax.lax.rsqrt(squares + 1e-6)


def cosines(one, other):
    """Returns the cosines of vectors, `(...)` for `(..., D)`."""
    return (directions(one) * directions(other)).sum(-1)


def put_together(student, teacher):
    """Returns a model of the student, two maps of its vectors, and a teacher.

    The teacher's weights are not trained.
    """
    from bertbook.model.layers import gather_tokens
    from bertbook.runtime import keras
    from bertbook.weights.matrices import float_matrix

    width = teacher.config.hidden_size
    teacher.trainable = False

    class Together(keras.Model):
        def __init__(self):
            super().__init__(dtype="mixed_bfloat16")
            self.student, self.teacher = student, teacher
            self.word_map, self.text_map = (
                keras.layers.Dense(units, dtype=self.dtype_policy)
                for units in (len(LAYERS) * width, width)
            )
            for layer in (self.word_map, self.text_map):
                layer.build((None, student.config.hidden_size))
            self.built = True

        def call(self, batch, training=None):
            theirs = teacher(batch["teacher"], output_hidden_states=True)
            outputs = student.encoder(batch, training=training)
            vectors = outputs["sequence_output"]
            chosen = gather_tokens(vectors, batch["masked_lm_positions"])
            table = float_matrix(student.encoder.embeddings.token)
            return {
                "mlm_logits": student.masked_lm(chosen, table),
                "words": self.word_map(vectors),
                "text": self.text_map(outputs["pooled_output"]),
                "teacher": theirs["hidden_states"],
            }

    return Together()


if __name__ == "__main__":
    main()
