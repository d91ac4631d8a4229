"""What `mini-qnli` loses on QNLI when a part is taken away, for a lab.

    BERTBOOK_DATA=FOLDER python -m experiments.pair_ablations

Damages inputs, masks and heads of the trained model, as the lab does with
questions of its own, and writes data/runs/pair_ablations.json: for each damage
how many rows of QNLI's dev set are right, and how many changed sides against
the model as it was trained. Nothing is trained. "Yes" goes to the likelier half
of the rows, since half of the labels are "yes". Beside them stands what
counting shared pieces reaches on three sets of pairs. About a quarter of an
hour on one core.
"""

import json
from pathlib import Path

import numpy as np
from keras import ops

import bertbook as bb
from bertbook.tasks import metrics
from experiments.floors import written_in

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "data" / "runs" / "pair_ablations.json"
ROWS = 64  # of a batch
LAB = "labs/41_take_it_apart"
# The lab's own: a batch with a mask that keeps both texts apart.
keep_apart = written_in(LAB, "may_look", "apart", np=np)["apart"]
NAMES = {"qnli": "QNLI", "stsb": "STS-B", "mrpc": "MRPC"}


def main():
    """Measures every damage, and writes the file."""
    data = bb.load_dataset("qnli", "dev")
    wanted = np.array([label == "entailment" for label in data["label"]])
    model = bb.BertForSequenceClassification.from_pretrained("mini-qnli")
    exam = Exam(model, list(data["text"]), list(data["text_pair"]))
    rows, counting = count_shared(model.tokenizer)
    found = {"rows": rows, "counting": counting, "damages": {}}
    intact = upper_half(exam.ask()) == wanted
    for name, damage in DAMAGES.items():
        right = upper_half(damage(exam)) == wanted
        found["damages"][name] = {
            "right": int(right.sum()),
            "lost": int((intact & ~right).sum()),
            "won": int((right & ~intact).sum()),
        }
        print(name, found["damages"][name], flush=True)
    KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def upper_half(scores):
    """Says yes to the upper half of the rows."""
    return np.argsort(np.argsort(scores, kind="stable")) >= len(scores) // 2


def count_shared(tokenizer):
    """Returns the rows of three dev sets, and what counting reaches on them."""
    rows, reached = {}, {}
    for name in ("qnli", "stsb", "mrpc"):
        train, dev = (bb.load_dataset(name, part) for part in ("train", "dev"))
        share, labels = shared(tokenizer, dev, name), np.array(dev["label"])
        if name == "stsb":
            found = metrics.spearman(labels.astype(float), share)
        elif name == "mrpc":  # the threshold that is best on train
            known, same = (
                shared(tokenizer, train, name),
                np.array(train["label"]),
            )
            cuts = np.quantile(known, np.linspace(0, 1, 101))
            right = [((known >= cut) == same).mean() for cut in cuts]
            found = ((share >= cuts[np.argmax(right)]) == labels).mean()
        else:
            found = (upper_half(share) == (labels == "entailment")).mean()
        rows[NAMES[name]] = len(labels)
        reached[NAMES[name]] = round(float(found), 4)
    return rows, reached


def shared(tokenizer, data, name):
    """Returns how much two texts share, a number for each pair.

    For QNLI it is the share of the question's pieces that its sentence holds,
    for the others the share of the pieces of both.
    """
    both = [
        tokenizer.encode_pieces(list(data[c])) for c in ("text", "text_pair")
    ]
    pairs = [[set(a), set(b)] for a, b in zip(*both, strict=True)]
    if name == "qnli":
        return np.array([len(a & b) / len(a) for a, b in pairs])
    return np.array([2 * len(a & b) / (len(a) + len(b)) for a, b in pairs])


class Exam:
    """The rows of a set, and a model to ask about them."""

    def __init__(self, model, questions, sentences):
        self.model, self.texts = model, (questions, sentences)
        self.yes = {v: k for k, v in model.config.id2label.items()}[
            "entailment"
        ]

    def ask(
        self, order=(0, 1), change=lambda batch: batch, cut=None, heads=None
    ):
        """Returns the probability of yes for each row.

        Args:
            order: Which text comes first, and second, if any.
            change: What is done to a batch.
            cut: In which layers both texts are kept apart, all but [CLS];
                None for the model's own call.
            heads: In which heads of these layers; None for all.
        """
        columns = [self.texts[i] for i in order]
        lengths = [sum(map(len, row)) for row in zip(*columns, strict=True)]
        places = np.argsort(lengths, kind="stable")
        p = np.zeros(len(places))
        for start in range(0, len(places), ROWS):
            some = places[start : start + ROWS]
            texts = [[column[i] for i in some] for column in columns]
            batch = change(self.model.tokenizer(*texts, max_length=128))
            logits = (
                self.model(batch)
                if cut is None
                else self.walk(batch, cut, heads)
            )
            p[some] = ops.convert_to_numpy(ops.softmax(logits))[:, self.yes]
        return p

    def walk(self, batch, layers, heads=None):
        """Returns logits, with both texts apart in some layers and heads."""
        encoder = self.model.encoder
        whole = batch["attention_mask"][:, None, None, :] != 0
        apart = keep_apart(batch)["attention_mask"][:, None] != 0
        apart[..., 0] = True  # all may look at [CLS]
        if heads is not None:
            every = np.arange(self.model.config.num_attention_heads)
            there = np.isin(every, heads)[:, None, None]  # (N, 1, 1)
            apart = np.where(there, apart, whole)  # (B, N, S, S)
        hidden = encoder.embeddings(batch["input_ids"], batch["token_type_ids"])
        for layer, block in enumerate(encoder.blocks):
            mask = apart if layer in layers else whole
            hidden = block(hidden, attention_mask=mask)
        return self.model.classifier(encoder.pooler(hidden[:, 0]))

    def without(self, layer, head):
        """Returns the probability of yes with one head silenced."""
        attention = self.model.encoder.blocks[layer].attention
        kernel = attention.output_projection.kernel
        kept = ops.convert_to_numpy(kernel).copy()
        kernel.assign(self.zeroed(kept, head))
        p = self.ask()
        kernel.assign(kept)
        return p

    def zeroed(self, kernel, head):
        """Returns a kernel of the output with the rows of one head at 0."""
        config = self.model.config
        width = config.hidden_size // config.num_attention_heads
        zeroed = kernel.copy()
        zeroed[width * head : width * (head + 1)] = 0
        return zeroed

    def at_its_mean(self, head):
        """Returns the probability of yes with a head of layer 0 held still.

        What it adds to every token is its mean over the first 640 rows.
        """
        encoder = self.model.encoder
        attention = encoder.blocks[0].attention
        kernel = attention.output_projection.kernel
        bias = attention.output_projection.bias
        kept = [ops.convert_to_numpy(w).copy() for w in (kernel, bias)]
        zeroed, added = self.zeroed(kept[0], head), []
        for start in range(0, 10 * ROWS, ROWS):
            some = [text[start : start + ROWS] for text in self.texts]
            batch = self.model.tokenizer(*some, max_length=128)
            real = batch["attention_mask"] != 0
            hidden = encoder.embeddings(
                batch["input_ids"], batch["token_type_ids"]
            )
            outputs = []
            for weights in (kept[0], zeroed):
                kernel.assign(weights)
                found = attention(hidden, real[:, None, None, :])
                outputs.append(ops.convert_to_numpy(found)[real])
            added.append(outputs[0] - outputs[1])
        kernel.assign(zeroed)
        bias.assign(kept[1] + np.concatenate(added).mean(axis=0))
        p = self.ask()
        kernel.assign(kept[0])
        bias.assign(kept[1])
        return p


def hide_cls(batch):
    """The batch with a mask that hides [CLS] from all words."""
    real = batch["attention_mask"] != 0
    mask = np.repeat(real[:, None, :], real.shape[1], axis=1)
    mask[:, 1:, 0] = False
    return batch | {"attention_mask": mask.astype("int32")}


def zero_segments(batch):
    """The batch with all tokens in segment 0."""
    return batch | {"token_type_ids": 0 * batch["token_type_ids"]}


DAMAGES = {
    "as it was trained": lambda exam: exam.ask(),
    "segments zeroed": lambda exam: exam.ask(change=zero_segments),
    "texts swapped": lambda exam: exam.ask(order=(1, 0)),
    "texts kept apart": lambda exam: exam.ask(change=keep_apart),
    "[CLS] hidden": lambda exam: exam.ask(change=hide_cls),
    "sentence alone": lambda exam: exam.ask(order=(1,)),
    "question alone": lambda exam: exam.ask(order=(0,)),
    **{
        f"apart in layer {layer}": lambda exam, layer=layer: exam.ask(
            cut=(layer,)
        )
        for layer in range(4)
    },
    "apart in layers 0 and 2": lambda exam: exam.ask(cut=(0, 2)),
    "apart in head 0 of layer 0": lambda exam: exam.ask(cut=(0,), heads=(0,)),
    "apart in heads 1 to 3 of layer 0": lambda exam: exam.ask(
        cut=(0,), heads=(1, 2, 3)
    ),
    "head 0 of layer 0 at its mean": lambda exam: exam.at_its_mean(0),
    **{
        f"without head {head} of layer {layer}": (
            lambda exam, layer=layer, head=head: exam.without(layer, head)
        )
        for layer in range(4)
        for head in range(4)
    },
}

if __name__ == "__main__":
    main()
