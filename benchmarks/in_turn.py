"""Several sides of a comparison, one after the other, so that a noisy machine disturbs all alike.

Speeds are told by the clock and by the time that processors spent on them (all threads together). Where other programs
want the machine as well, the second says more; there, take one thread, because threads that wait for each other spin.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable

CLOCKS = {"second": time.perf_counter, "processor_second": time.process_time}


def in_turn(sides: dict[str, Callable[[], int]], seconds: float) -> dict[str, dict[str, float]]:
    """Runs all sides in turn for about `seconds`; things per second, and our ratio to each peer by rounds."""
    speeds: dict[str, dict[str, list[float]]] = {clock: {name: [] for name in sides} for clock in CLOCKS}
    for run in sides.values():
        run()
    started, turn = time.perf_counter(), 0
    while turn < 3 or time.perf_counter() - started < seconds:
        for name in list(sides) if turn % 2 == 0 else list(sides)[::-1]:
            gc.collect()
            begun = {clock: read() for clock, read in CLOCKS.items()}
            things = sides[name]()
            for clock, read in CLOCKS.items():
                speeds[clock][name].append(things / max(read() - begun[clock], 1e-9))
        turn += 1
    medians = {
        name: {f"per_{clock}": round(statistics.median(by_name[name]), 1) for clock, by_name in speeds.items()}
        for name in sides
    }
    ratios = {
        f"ratio_to_{peer}" if clock == "second" else f"processor_ratio_to_{peer}": _ratio(by_name["ours"], values)
        for clock, by_name in speeds.items()
        for peer, values in by_name.items()
        if peer != "ours"
    }
    return {**medians, **ratios, "rounds": turn}  # type: ignore[dict-item]


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return round(statistics.median(one / other for one, other in zip(ours, theirs, strict=True)), 2)
