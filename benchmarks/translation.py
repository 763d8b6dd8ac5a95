"""Training and decoding speed beside `transformers`' Marian: the same sizes, the same weights, the same outputs.

    python benchmarks/translation.py [--minutes 5] [--out results/benchmarks/translation.json]

Both sides run in this process, in turn, at the same precision, each round in both orders; a ratio is the median of the
rounds, so that a noisy machine disturbs both alike. Decoding is checked first: a ratio counts only for equal outputs.
Sentence lengths are drawn from Multi30k's (mean 15, 4 to 40) or all equal, which is what Marian likes best. Where
joeynmt is installed (see `joey.py`), its Transformer of the same sizes is trained in turn with the others.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path

import joey
import numpy as np
import torch
from in_turn import in_turn
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel

from regard.core.files import write_json
from regard.core.special import BOS, EOS, PAD
from regard.models.transformer import Transformer
from regard.pretrained.marian import marian_to_transformer
from regard.recipes.machine import describe_machine
from regard.tasks.decoding import DecodingConfig, decode
from regard.tasks.losses import readout_cross_entropy
from regard.tasks.translation import TranslationBatch

VOCABULARY, WIDTH, HEADS, LAYERS, FEED_FORWARD = 8000, 256, 4, 4, 1024
AIMS = {"training": 1.5, "greedy": 2.0, "beam": 2.0}


def make_models() -> tuple[MarianMTModel, Transformer]:
    """A random Marian, and the same weights in ours."""
    torch.manual_seed(0)
    config = MarianConfig(
        vocab_size=VOCABULARY,
        d_model=WIDTH,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=FEED_FORWARD,
        decoder_ffn_dim=FEED_FORWARD,
        activation_function="relu",
        scale_embedding=True,
        dropout=0.1,
        pad_token_id=PAD,
        eos_token_id=EOS,
        bos_token_id=BOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
        max_position_embeddings=512,
    )
    marian = MarianMTModel(config)
    # At the usual small weights every source has the same translation; at these it depends on what is read.
    for name, weight in marian.named_parameters():
        if weight.dim() == 2 and "embed_positions" not in name:
            nn.init.normal_(weight, std=2.5 * WIDTH**-0.5 if "layers" in name else 0.01)
    our_config, weights = marian_to_transformer(marian.state_dict(), marian.config.to_dict())
    ours = Transformer(our_config.model_copy(update={"dropout_rate": 0.1}), VOCABULARY, VOCABULARY)
    ours.load_state_dict(weights)
    return marian, ours


def batches(lengths: np.ndarray, budget: int, generator: np.random.Generator) -> list[tuple[Tensor, Tensor]]:
    """Sources and targets of these lengths, bucketed into padded batches of at most `budget` tokens."""
    made = []
    order = np.sort(lengths)[::-1]
    while len(order):
        size = max(1, budget // int(order[0]))
        rows, order = order[:size], order[size:]
        table = np.full((2, len(rows), rows[0]), PAD)
        for row, length in enumerate(rows):
            table[:, row, :length] = generator.integers(4, VOCABULARY, (2, length))
            table[:, row, length - 1] = EOS
        made.append((torch.from_numpy(table[0]), torch.from_numpy(table[1])))
    return made


def training_step(model: nn.Module, kind: str, precision: torch.dtype) -> Callable[[Tensor, Tensor], None]:
    """One update with label smoothing, clipping and AdamW, as each library's users write it."""
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def step(source: Tensor, target: Tensor) -> None:
        start = torch.full_like(target[:, :1], BOS)
        shifted = torch.cat([start, target[:, :-1]], dim=1)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16):
            if kind == "marian":
                logits = model(
                    input_ids=source, attention_mask=(source != PAD).long(), decoder_input_ids=shifted, use_cache=False
                ).logits
                loss = nn.functional.cross_entropy(
                    logits.flatten(0, 1), target.flatten(), ignore_index=PAD, label_smoothing=0.1
                )
            else:
                batch = TranslationBatch(source, shifted, target)
                output = model(batch.source, batch.target_in)
                present = batch.target_out != PAD
                targets = batch.target_out[present]
                loss = readout_cross_entropy(output.features[present], output.readout, targets, 0.1) / len(targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def decoder(model: nn.Module, kind: str, width: int, max_length: int) -> Callable[[Tensor], list[list[int]]]:
    """Translations as token lists without special tokens."""
    model.eval()

    @torch.inference_mode()
    def marian(source: Tensor) -> list[list[int]]:
        written = model.generate(  # type: ignore[operator]
            input_ids=source,
            attention_mask=(source != PAD).long(),
            num_beams=width,
            do_sample=False,
            max_new_tokens=max_length,
            length_penalty=1.0,
            early_stopping=False,
        )
        rows = []
        for row in written[:, 1:].tolist():
            row = row[: row.index(EOS)] if EOS in row else row
            rows.append([token for token in row if token != PAD])
        return rows

    config = DecodingConfig(
        method="greedy" if width == 1 else "beam",
        beam_width=width,
        max_length_ratio=0.0,
        max_length_extra=max_length,
        max_length=max_length,
        forbidden=(PAD,),
    )

    def ours(source: Tensor) -> list[list[int]]:
        return [list(found[0].tokens) for found in decode(model, source, config)]  # type: ignore[arg-type]

    return marian if kind == "marian" else ours


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0, help="time for all measurements together")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks/translation.json"))
    arguments = parser.parse_args()
    generator = np.random.default_rng(0)
    drawn = np.clip(generator.gamma(9.0, 15 / 9.0, 256).round().astype(int), 4, 40)
    sets = {
        "equal lengths": batches(np.full(64, 16), 1024, generator),
        "lengths of Multi30k": batches(drawn, 1024, generator),
    }
    cases = [(name, dtype) for name in sets for dtype in (torch.float32, torch.bfloat16)]
    seconds = arguments.minutes * 60 / (len(cases) * 3)
    measured = []
    for name, dtype in cases:
        marian, ours = make_models()
        steps = {"marian": training_step(marian, "marian", dtype), "ours": training_step(ours, "ours", dtype)}
        if joey.installed():
            third = joey.make_model(VOCABULARY, WIDTH, HEADS, LAYERS, FEED_FORWARD)
            steps["joeynmt"] = joey.training_step(third, dtype)

        def train(kind: str, steps: dict = steps, data: list = sets[name]) -> int:  # type: ignore[type-arg]
            for source, target in data:
                steps[kind](source, target)
            return sum(int((target != PAD).sum()) for _, target in data)

        result = in_turn({kind: lambda kind=kind: train(kind) for kind in steps}, seconds)  # type: ignore[misc]
        measured.append({"what": "training", "data": name, "precision": str(dtype)[6:], **result})
        print(json.dumps(measured[-1]), flush=True)

        marian, ours = make_models()
        marian, ours = marian.to(dtype), ours.to(dtype)
        for what, width in (("greedy", 1), ("beam", 4)):
            sides = {"marian": decoder(marian, "marian", width, 24), "ours": decoder(ours, "ours", width, 24)}
            sources = [source for source, _ in sets[name]]
            pairs = [(sides["marian"](source), sides["ours"](source)) for source in sources]
            rows = [(theirs, mine) for one, other in pairs for theirs, mine in zip(one, other, strict=True)]
            equal = sum(theirs == mine for theirs, mine in rows) / len(rows)

            def run(kind: str, sides: dict = sides, sources: list = sources) -> int:  # type: ignore[type-arg]
                return sum(len(row) + 1 for source in sources for row in sides[kind](source))

            result = in_turn({kind: lambda kind=kind: run(kind) for kind in sides}, seconds)  # type: ignore[misc]
            measured.append(
                {"what": what, "data": name, "precision": str(dtype)[6:], "equal_outputs": round(equal, 4), **result}
            )
            print(json.dumps(measured[-1]), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    sizes = {"vocabulary": VOCABULARY, "width": WIDTH, "heads": HEADS, "layers": LAYERS, "feed_forward": FEED_FORWARD}
    write_json(
        arguments.out,
        {
            "command": "python benchmarks/translation.py",
            "date": time.strftime("%Y-%m-%d"),
            "machine": describe_machine(),
            "sizes": sizes,
            "aims": AIMS,
            "peak_memory_of_both": peak,
            "measured": measured,
        },
    )
    print(f"written to {arguments.out}")


if __name__ == "__main__":
    main()
