"""Hugging Face's layers in PyTorch, in a process of their own.

Two frameworks in one process share their threads, and the second is half as
fast as alone. So `TorchPeer` starts a child that holds the model, and asks it
for one step at a time.
"""

import multiprocessing

RATE, DECAY, EPSILON = 1e-4, 0.01, 1e-6


class TorchPeer:
    """A masked-word model that trains in bfloat16 by autocast.

    Args:
        folder: A model in the layout of Hugging Face.
        batch: A batch of masked words, as NumPy arrays.
    """

    def __init__(self, folder, batch):
        context = multiprocessing.get_context("spawn")
        self.connection, end = context.Pipe()
        self.child = context.Process(
            target=serve, args=(end, str(folder), batch), daemon=True
        )
        self.child.start()
        self.loss = self.connection.recv()  # of the weights as they are

    def step(self):
        """Takes a step and returns its loss."""
        self.connection.send("step")
        return self.connection.recv()


def serve(connection, folder, batch):
    """Loads the model in the child, and takes a step whenever it is asked."""
    import torch
    import transformers

    model = transformers.BertForMaskedLM.from_pretrained(folder)
    model.train()
    optimizer = torch.optim.AdamW(
        model.parameters(), RATE, weight_decay=DECAY, eps=EPSILON, fused=True
    )
    ids, segments, mask, places, labels, _ = (
        torch.tensor(array).long() for array in batch.values()
    )
    width = model.config.hidden_size

    def compute_loss():
        with torch.autocast("cpu", torch.bfloat16):
            hidden = model.bert(ids, mask, segments).last_hidden_state
            chosen = places[..., None].expand(-1, -1, width)
            logits = model.cls(hidden.gather(1, chosen))  # (B, M, V)
        return torch.nn.functional.cross_entropy(
            logits.float().flatten(0, 1), labels.flatten()
        )

    connection.send(float(compute_loss().detach()))
    while True:
        try:
            connection.recv()
        except EOFError:
            return
        loss = compute_loss()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        connection.send(float(loss.detach()))
