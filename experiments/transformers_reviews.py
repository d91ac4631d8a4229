"""The same job in two packages: 400 reviews, by bertbook and by transformers.

    .venv-peers/bin/python -m experiments.transformers_reviews [--minutes N]

Both fine-tune `mini-taught` on the training reviews that ship, with one recipe
and other random numbers, and are measured on the 600 of dev after the last
epoch. Writes data/runs/transformers_reviews.json: the accuracy and the
processor seconds of each run, and the lines of both functions. The same command
goes on where it stopped.
"""

import argparse
import inspect
import json
import time

import bertbook as bb
from experiments.results import ROOT

KEPT = ROOT / "data" / "runs" / "transformers_reviews.json"
SEEDS = 5


def main():
    """Does what is missing, and writes the file after each run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=float("inf"))
    end = time.time() + 60 * parser.parse_args().minutes
    parts = [bb.load_dataset("reviews", part) for part in ("train", "dev")]
    folder = bb.locations.find_folder("mini-taught")
    kept = json.loads(KEPT.read_text("utf-8")) if KEPT.is_file() else {}
    for seed in range(SEEDS):
        for name, function in WAYS.items():
            found = kept.setdefault(name, {"accuracy": [], "seconds": []})
            found["lines"] = count_lines(function)
            if len(found["accuracy"]) > seed or time.time() > end:
                continue
            start = time.process_time()
            right = function(folder, *parts, seed)
            found["seconds"].append(round(time.process_time() - start))
            found["accuracy"].append(round(right, 4))
            print(name, seed, found["accuracy"][-1], found["seconds"][-1])
            KEPT.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


def count_lines(function):
    """Returns the lines of a function that are not empty."""
    source = inspect.getsource(function)
    return sum(bool(line.strip()) for line in source.splitlines())


def by_bertbook(folder, train, dev, seed):
    import keras

    keras.utils.set_random_seed(seed)
    kind = bb.BertForSequenceClassification
    model = kind.from_pretrained(folder, num_labels=2)
    quiet = bb.FinetuningOptions(verbose=False)
    how = {"epochs": 10, "learning_rate": 3e-4, "options": quiet}
    bb.finetune(model, train, seed=seed, **how)
    return bb.evaluate(model, dev)["accuracy"]


def by_transformers(folder, train, dev, seed, epochs=10, rate=3e-4, size=32):
    import torch
    import transformers as hf

    torch.manual_seed(seed)
    tok = hf.AutoTokenizer.from_pretrained(folder)
    kind = hf.BertForSequenceClassification
    model = kind.from_pretrained(folder, num_labels=2, dtype=torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=0.01)
    n = len(train["text"])
    total = epochs * -(-n // size)
    schedule = hf.get_linear_schedule_with_warmup(optimizer, total // 10, total)

    def encode(data, rows):
        texts = [data["text"][i] for i in rows]
        labels = torch.tensor([data["label"][i] for i in rows])
        return tok(texts, padding=True, return_tensors="pt"), labels

    model.train()
    for _ in range(epochs):
        order = torch.randperm(n).tolist()
        for first in range(0, n, size):
            batch, labels = encode(train, order[first : first + size])
            model(**batch, labels=labels).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    model.eval()
    right = 0
    for first in range(0, len(dev["text"]), size):
        rows = range(len(dev["text"]))[first : first + size]
        batch, labels = encode(dev, rows)
        with torch.no_grad():
            said = model(**batch).logits.argmax(-1)
        right += int((said == labels).sum())
    return right / len(dev["text"])


WAYS = {"bertbook": by_bertbook, "transformers": by_transformers}

if __name__ == "__main__":
    bb.setup()
    main()
