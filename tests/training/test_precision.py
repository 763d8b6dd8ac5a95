import pytest
import torch

from regard.core.errors import ConfigError
from regard.training.precision import has_native_bfloat16, resolve_precision

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ({"avx2": True}, "float32"),
        ({"avx512_f": True, "avx512_bf16": False}, "float32"),
        ({"avx512_bf16": True}, "bfloat16"),
        ({"amx_bf16": True}, "bfloat16"),
        ({"neon": True, "bf16": True}, "bfloat16"),
    ],
)
def test_auto_goes_by_what_the_processor_multiplies_natively(monkeypatch, capabilities, expected):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    assert resolve_precision("auto", CPU) == expected


@pytest.mark.parametrize("native", [True, False])
def test_auto_asks_a_gpu_for_the_real_thing(monkeypatch, native):
    asked = []
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: asked.append(0) or native)
    assert has_native_bfloat16(torch.device("cuda")) is native
    assert asked


def test_a_stated_precision_is_taken_as_it_is():
    assert resolve_precision("float32", CPU) == "float32"
    assert resolve_precision("bfloat16", CPU) == "bfloat16"
    assert resolve_precision("float16", torch.device("cuda")) == "float16"


def test_float16_is_refused_on_the_processor():
    with pytest.raises(ConfigError, match="bfloat16, float32 or auto"):
        resolve_precision("float16", CPU)
