"""A program of a user, which a checker of types must pass."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bertbook as bb


def read(texts: list[str]) -> NDArray[np.float32]:
    encoder = bb.BertEncoder.from_pretrained("mini", dtype="auto")
    outputs = encoder(encoder.tokenizer(texts), output_attentions=True)
    print(outputs["sequence_output"].shape, bb.attention_path(encoder).why)
    return encoder.embed_texts(texts, pooling="mean")


def encoder_batch(encoder: bb.BertEncoder, texts: list[str]) -> dict[str, Any]:
    tokenizer = encoder.tokenizer
    encoding: bb.Encoding = tokenizer.encode(texts[0], max_length=16)
    print(encoding.tokens, tokenizer.decode(encoding.input_ids))
    return dict(tokenizer(texts))


def errors(labels: Any, predictions: Any) -> float:
    return float((labels != predictions).sum())


def train(out: Path) -> dict[str, float]:
    data = bb.load_dataset("opinions", split="train")
    dev = bb.load_dataset("opinions")
    model = bb.BertForSequenceClassification.from_pretrained(
        "mini", num_labels=2
    )
    options = bb.FinetuningOptions(frozen_layers=2, verbose=False)
    history = bb.finetune(
        model, data, dev, epochs=1, learning_rate=1e-3, out=out, options=options
    )
    print(history["dev_accuracy"][-1], model.config.num_hidden_layers)
    rows = [{"text": "Fine.", "label": 1}, {"text": "Dull.", "label": 0}]
    bb.finetune(model, rows, dev, class_weight="balanced", metrics=[errors])
    for row in model.predict_texts(["Fine."], max_length=32, all_scores=True):
        print(row["label"], row["scores"])
    model.save_pretrained(out / "copy", dtype="float16")
    model.compile(optimizer="adamw", loss="sparse_categorical_crossentropy")
    model.summary()
    bb.finetune(model, rows, {"one": dev, "other": dev})
    report = bb.evaluate(model, dev, report=True)
    report.save(out / "report")
    print(report, report["accuracy"], report.tables["labels"].rows)
    return bb.evaluate(model, dev, batch_size=8)


def adapt(out: Path) -> int:
    model = bb.BertForSequenceClassification.from_pretrained(
        "mini", num_labels=2, hidden_dropout_prob=0.2
    )
    part, dev = bb.train_dev_split([{"text": "Fine.", "label": 1}] * 9, dev=0.2)
    trained = bb.add_lora(model, rank=4).trained
    bb.finetune(model, part, dev, epochs=1, learning_rate=None)
    model.save_adapter(out / "adapter")
    model.load_adapter(out / "adapter")
    bb.merge_lora(model)
    model.quantize("int8")
    model.save(out / "model.keras", include_optimizer=True)
    model.export(out / "served", verbose=False)
    print(model.to_json(), model.jit_compile, model.losses, model.lora)
    model.reset_metrics()
    return trained


class Doubled(bb.BertForSequenceClassification):
    def call(self, batch: Any, training: bool | None = None) -> Any:
        return 2.0 * super().call(batch, training=training)

    def train_step(self, data: Any) -> Any:
        return super().train_step(data)


def begin(files: list[Path], out: Path) -> bb.BertForPreTraining:
    recipe = bb.PretrainingRecipe(steps=10, batch_size=8, dtype="auto")
    config = bb.BertConfig.named("tiny", vocab_size=8_192)
    return bb.pretrain(files, out, recipe, model=config, tokenizer="mini")


def answer(model: bb.BertForQuestionAnswering) -> str:
    found = model.predict_answers(["Who?"], ["Anna went to Oslo."])
    return str(found[0]["text"])


def look(encoder: bb.BertEncoder) -> None:
    viewer = bb.AttentionViewer.from_text(encoder, "The bank was shut.")
    print(len(viewer.to_html()))


def write(model: bb.CausalLM) -> list[str]:
    guesses = bb.fill_mask("The bank was [MASK].", top_k=3)
    print(guesses[0]["token"], bb.__version__)
    return bb.generate(model, ["Once"], search="sample", top_p=0.9)


if __name__ == "__main__":
    bb.setup(seed=1)
    bert = bb.BertEncoder.from_pretrained("mini")
    print(encoder_batch(bert, ["Fire!"]), bert(bert.tokenizer(["Fire!"])))
    print(read(["The bank was shut."]), train(Path("out")))
