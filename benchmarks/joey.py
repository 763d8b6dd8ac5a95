"""joeynmt's Transformer and a training step as its users write it, for `translation.py`, where joeynmt is installed.

It asks for old versions of what we need new, but runs without them:
    pip install --no-deps joeynmt sentencepiece subword-nmt "importlib_metadata<8.8" zipp
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from regard.core.special import EOS, NUM_SPECIAL, PAD

JOEY_PAD = 1


def installed() -> bool:
    return importlib.util.find_spec("joeynmt") is not None


def make_model(vocabulary: int, width: int, heads: int, layers: int, feed_forward: int) -> nn.Module:
    """Of the same sizes as ours and Marian's, with one table of embeddings for all."""
    from joeynmt.model import build_model
    from joeynmt.vocabulary import Vocabulary

    names = {"unk": 0, "pad": JOEY_PAD, "bos": 2, "eos": EOS}
    marks = {f"{name}_token": f"<{name}>" for name in names} | {f"{name}_id": place for name, place in names.items()}
    words = Vocabulary(
        [f"w{place}" for place in range(vocabulary - NUM_SPECIAL)],
        SimpleNamespace(**marks, sep_token=None, sep_id=None, lang_tags=[]),
    )
    side = {
        "type": "transformer",
        "num_layers": layers,
        "num_heads": heads,
        "hidden_size": width,
        "ff_size": feed_forward,
        "dropout": 0.1,
        "embeddings": {"embedding_dim": width, "scale": True, "dropout": 0.1},
    }
    model = build_model({"encoder": side, "decoder": side, "tied_embeddings": True, "tied_softmax": True}, words, words)
    model.loss_function = ("crossentropy", 0.1)
    return model


def training_step(model: nn.Module, precision: torch.dtype) -> Callable[[Tensor, Tensor], None]:
    """One update, with the optimizer and the clipping that the other sides have."""
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def step(source: Tensor, target: Tensor) -> None:
        source, target = (tokens.masked_fill(tokens == PAD, JOEY_PAD) for tokens in (source, target))
        read = torch.cat([torch.full_like(target[:, :1], 2), target[:, :-1]], dim=1)
        present = source != JOEY_PAD
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16):
            loss, *_ = model(
                return_type="loss",
                src=source,
                src_mask=present[:, None],
                src_length=present.sum(dim=1),
                trg_input=read,
                trg=target,
                trg_mask=(target != JOEY_PAD)[:, None],
            )
        (loss / (target != JOEY_PAD).sum()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step
