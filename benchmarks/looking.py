"""What looking costs: a plain forward, ours with everything asked of it, and `transformers` with attention returned.

    python benchmarks/looking.py [--tokens 1024 4096] [--precisions float32 bfloat16] [--rounds 3] [--large 16384]

A BERT of 12 layers, 12 heads and width 768 with random weights, the same for all sides, over one text of random words:

    plain      transformers' BERT (sdpa), nothing asked of it
    ours       the same model in `regard.record`; entropy, largest weight, distance and attention received of every head
               of every layer, and one row of the rollout through all of them
    theirs     the same weights with eager attention and `output_attentions=True`, nothing computed from the maps

Each side of each case is a process of its own, so that its peak memory is its own; rounds go through the sides in turn,
and ratios are medians of the rounds. A 16,384-token run of ours alone says whether it stays below 4 GB.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

LAYERS, HEADS, WIDTH, FEED_FORWARD, VOCABULARY = 12, 12, 768, 3072, 1000
SIDES = ("plain", "ours", "theirs")
AIMS = {"time": 1.5, "memory": 1.25, "large_bytes": 4e9}
"""Ours over plain at 4,096 tokens, and bytes at 16,384."""


def make_model(tokens: int, precision: str, attention: str) -> torch.nn.Module:
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=FEED_FORWARD,
        max_position_embeddings=tokens,
        attn_implementation=attention,
    )
    return BertModel(config, add_pooling_layer=False).to(getattr(torch, precision)).eval()


def run_side(side: str, tokens: int, precision: str) -> dict[str, Any]:
    """One run, timed after a short text has warmed everything up; peak memory of this process."""
    model = make_model(tokens, precision, "eager" if side == "theirs" else "sdpa")
    words = torch.randint(0, VOCABULARY, (1, tokens), generator=torch.Generator().manual_seed(1))
    extra: dict[str, Any] = {}
    with torch.inference_mode():
        look(model, words[:, :64], side)
        before = peak_memory()
        begin = time.perf_counter()
        extra = look(model, words, side)
        seconds = time.perf_counter() - begin
    return {"seconds": seconds, "peak_bytes": peak_memory(), "peak_before": before, **extra}


def look(model: torch.nn.Module, words: torch.Tensor, side: str) -> dict[str, Any]:
    if side == "plain":
        model(words)
        return {}
    if side == "theirs":
        maps = model(words, output_attentions=True).attentions
        return {"maps_bytes": sum(part.nbytes for part in maps)}
    return look_with_regard(model, words)


def look_with_regard(model: torch.nn.Module, words: torch.Tensor) -> dict[str, Any]:
    import regard
    from regard.core.axes import Text

    begin = time.perf_counter()
    with regard.record(model) as recording:
        model(words)
    recorded = time.perf_counter() - begin
    role = recording[recording.addresses[0]].keys
    recording.label(**{role: [Text(tuple(map(str, words[0].tolist())))]})
    surveys, row = recording.overview(row=0)
    assert len(surveys) == LAYERS
    assert abs(row.weights.sum().item() - 1) < 1e-3
    assert all(found.distance is not None for found in surveys.values())
    return {"recorded_bytes": recording.nbytes, "seconds_recording": recorded}


def peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def in_a_process(side: str, tokens: int, precision: str, threads: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--side", side, "--tokens", str(tokens), "--precisions", precision]
    done = subprocess.run([*command, "--threads", str(threads)], capture_output=True, text=True)
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}"}
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def compare(tokens: int, precision: str, rounds: int, threads: int) -> dict[str, Any]:
    """All sides in turn, and what ours and theirs are to plain."""
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    for turn in range(rounds):
        for side in SIDES if turn % 2 == 0 else SIDES[::-1]:
            runs[side].append(in_a_process(side, tokens, precision, threads))
    result: dict[str, Any] = {"tokens": tokens, "precision": precision, "rounds": rounds}
    for side, measured in runs.items():
        failed = [run["failed"] for run in measured if "failed" in run]
        if failed:
            result[side] = {"failed": failed[0]}
            continue
        result[side] = {
            "seconds": round(statistics.median(run["seconds"] for run in measured), 3),
            "peak_bytes": int(statistics.median(run["peak_bytes"] for run in measured)),
        }
        for name in ("recorded_bytes", "maps_bytes"):
            if name in measured[0]:
                result[side][name] = measured[0][name]
    for side in ("ours", "theirs"):
        if "failed" not in result[side] and "failed" not in result["plain"]:
            for name in ("seconds", "peak_bytes"):
                pairs = zip(runs[side], runs["plain"], strict=True)
                ratio = statistics.median(mine[name] / plain[name] for mine, plain in pairs)
                result[side][f"{name}_over_plain"] = round(ratio, 2)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1024, 4096])
    parser.add_argument("--precisions", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", type=int, default=0, help="tokens of one more run of ours alone, such as 16384")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--side", choices=SIDES, help="run this side once, here, and print what was measured")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks/looking.json"))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.side:
        print(json.dumps(run_side(arguments.side, arguments.tokens[0], arguments.precisions[0])))
        return
    from regard.core.files import write_json
    from regard.recipes.machine import describe_machine

    measured = []
    for tokens in arguments.tokens:
        for precision in arguments.precisions:
            measured.append(compare(tokens, precision, arguments.rounds, arguments.threads))
            print(json.dumps(measured[-1]), flush=True)
    large = []
    for precision in arguments.precisions if arguments.large else ():
        run = in_a_process("ours", arguments.large, precision, arguments.threads)
        large.append({"tokens": arguments.large, "precision": precision, **run})
        print(json.dumps(large[-1]), flush=True)
    write_json(
        arguments.out,
        {
            "command": "python benchmarks/looking.py " + " ".join(sys.argv[1:]),
            "date": time.strftime("%Y-%m-%d"),
            "machine": describe_machine(),
            "threads": arguments.threads,
            "sizes": {"layers": LAYERS, "heads": HEADS, "width": WIDTH, "feed_forward": FEED_FORWARD},
            "aims": AIMS,
            "measured": measured,
            "large": large,
        },
    )
    print(f"written to {arguments.out}")


if __name__ == "__main__":
    main()
