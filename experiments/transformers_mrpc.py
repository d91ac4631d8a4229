"""What Hugging Face's classifier reaches on MRPC with our recipe.

    BERTBOOK_DATA=FOLDER python -m experiments.transformers_mrpc

The same model, rows, epochs, rates and evaluations as the runs of `minilm` on
mrpc in `experiments/results.py`, but with the model and the collation of
transformers and PyTorch's AdamW. The seeds draw another order and another
head than ours, so only the means can be compared. A file is kept for each
run, which `results.py` shows beside ours.
"""

import dataclasses
import json
import math
import os
import time

import numpy as np
import torch
import transformers

import bertbook as bb
from bertbook.tasks import metrics
from bertbook.training.optimizers import WarmupLinearDecay
from experiments import results

WARMUP, DECAY, CLIP = (
    0.1,
    0.01,
    1.0,
)  # those of `bertbook.finetuning.finetune.FinetuningOptions`


def main():
    """Does the runs that are not kept yet, and compares the means."""
    plan = results.peer_of(results.MRPC)
    results.KEPT.mkdir(parents=True, exist_ok=True)
    for seed in range(plan.seeds):
        path = results.KEPT / f"{plan.name}_{seed}.json"
        if not path.is_file():
            result = run(plan, seed)
            print(seed, result["metrics"], result["seconds"], flush=True)
            text = json.dumps(result, indent=2) + "\n"
            path.write_text(text, encoding="utf-8")
    compare(results.kept(results.MRPC), results.kept(plan))


def run(plan, seed):
    """Fine-tunes once, and returns what is kept of it."""
    train, dev = (bb.load_dataset(plan.dataset, s) for s in ("train", "dev"))
    folder = os.environ["BERTBOOK_MINILM"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    start = time.perf_counter()
    torch.manual_seed(seed)
    kind = transformers.BertForSequenceClassification
    model = kind.from_pretrained(folder, num_labels=2)
    steps = math.ceil(len(train["label"]) / plan.batch_size)
    optimizer = make_optimizer(model, plan)
    total = steps * plan.epochs
    schedule = WarmupLinearDecay(
        plan.learning_rate, round(total * WARMUP), total
    )
    rates = iter([float(schedule(step)) for step in range(total)])
    accuracies = []
    for _ in range(plan.epochs):
        order = torch.randperm(len(train["label"])).tolist()
        for first in range(0, len(order), plan.batch_size):
            rows = order[first : first + plan.batch_size]
            rate = next(rates)
            for group in optimizer.param_groups:
                group["lr"] = rate
            take_step(model, optimizer, encode(tokenizer, plan, train, rows))
        accuracies.append(evaluate(model, tokenizer, plan, dev))
    return {
        "plan": dataclasses.asdict(plan),
        "seed": seed,
        "metrics": max(accuracies, key=lambda found: found["accuracy"]),
        "history": {"dev_accuracy": [a["accuracy"] for a in accuracies]},
        "seconds": round(time.perf_counter() - start),
        "machine": f"CPU, {os.cpu_count()} cores, torch",
    }


def make_optimizer(model, plan):
    """Returns PyTorch's AdamW without decay of biases and norms."""
    groups = {True: [], False: []}
    for name, parameter in model.named_parameters():
        groups["LayerNorm" in name or name.endswith("bias")].append(parameter)
    return torch.optim.AdamW(
        [
            {"params": groups[False], "weight_decay": DECAY},
            {"params": groups[True], "weight_decay": 0.0},
        ],
        lr=plan.learning_rate,
        eps=1e-6,
    )


def encode(tokenizer, plan, data, rows):
    """Returns the tensors of some rows, padded to the longest."""
    first, second = ([data[n][i] for i in rows] for n in ("text", "text_pair"))
    batch = tokenizer(
        first,
        second,
        truncation=True,
        max_length=plan.max_length,
        padding=True,
        return_tensors="pt",
    )
    batch["labels"] = torch.tensor([data["label"][i] for i in rows])
    return batch


def take_step(model, optimizer, batch):
    """Updates the weights once."""
    model.train()
    loss = model(**batch).loss
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    optimizer.step()


@torch.no_grad()
def evaluate(model, tokenizer, plan, data):
    """Returns the accuracy and F1 on a data set."""
    model.eval()
    guesses = []
    for first in range(0, len(data["label"]), plan.batch_size):
        rows = range(len(data["label"]))[first : first + plan.batch_size]
        batch = encode(tokenizer, plan, data, rows)
        guesses += model(**batch).logits.argmax(-1).tolist()
    return {
        "accuracy": metrics.accuracy(data["label"], guesses),
        "f1": metrics.f1(data["label"], guesses),
    }


def compare(ours, theirs):
    """Prints both means, and how many standard errors they are apart."""
    columns = [
        np.array([result["metrics"]["accuracy"] for result in found])
        for found in (ours, theirs)
    ]
    for name, values in zip(("bertbook", "transformers"), columns, strict=True):
        print(f"{name}: {values.mean():.4f}, spread {values.std(ddof=1):.4f}")
    error = math.sqrt(sum(v.var(ddof=1) / len(v) for v in columns))
    apart = abs(columns[0].mean() - columns[1].mean()) / error
    print(f"apart by {apart:.2f} standard errors")


if __name__ == "__main__":
    main()
