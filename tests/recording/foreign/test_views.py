"""What is made of recordings of other people's models, beside plain torch: relevance, importance of heads, rollout."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import regard
from regard.core.errors import RecordingError
from regard.recording.importance import importance
from regard.recording.relevance import relevance

from .test_calls import Attention, AttentionByHand, Stack, inputs
from .transformers_subjects import SUBJECTS, awake, text

T = pytest.importorskip("transformers")


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_relevance_of_a_bert_by_its_own_gradients(implementation: str) -> None:
    T.logging.set_verbosity_error()
    model = awake(SUBJECTS["bert"].build())
    model.set_attn_implementation(implementation)
    given = text(padded=0)
    found = relevance(model, lambda: model(**given), lambda output: output.last_hidden_state[:, 0, 3].sum())
    model.set_attn_implementation("eager")
    output = model(**given, output_attentions=True)
    gradients = torch.autograd.grad(output.last_hidden_state[:, 0, 3].sum(), output.attentions)
    rows = torch.eye(13).expand(2, 13, 13)
    for weights, gradient in zip(output.attentions, gradients, strict=True):
        rows = rows + (weights * gradient).clamp(min=0).mean(dim=1) @ rows
    for example in range(2):
        landed = found.onto(example=example, rows=0).weights
        torch.testing.assert_close(landed, rows[example, 0].detach(), atol=1e-5, rtol=1e-4)


def test_relevance_of_written_out_attention_is_that_of_fused() -> None:
    fused, by_hand = Stack(Attention(), Attention()).eval(), Stack(AttentionByHand(), AttentionByHand()).eval()
    by_hand.load_state_dict(fused.state_dict())
    given = inputs()

    def landed(model: nn.Module) -> Tensor:
        found = relevance(model, lambda: model(given), lambda output: output[1, -1, 0])
        return found.onto(example=1, rows=-1).weights

    with pytest.raises(RecordingError, match="has no taps and no attention that Regard knows"):
        landed(nn.Sequential(nn.Linear(10, 10)).eval())
    torch.testing.assert_close(landed(by_hand), landed(fused), atol=1e-5, rtol=1e-4)


def test_a_layer_that_hands_no_context_over_is_named() -> None:
    model = Stack(nn.TransformerEncoderLayer(10, 2, 11, batch_first=True)).eval()
    with pytest.raises(RecordingError, match=r"layers\.0\.self_attn does not hand its context over"):
        relevance(model, lambda: model(inputs()), lambda output: output.sum())


def test_importance_of_every_head() -> None:
    model = awake(SUBJECTS["llama"].build())
    batches = [text(padded=0), text(padded=0)]

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return model(**batch).last_hidden_state.square().mean()

    found = importance(model, batches, loss, taps="layers.1.*")
    assert [(row.address, row.head) for row in found.heads] == [("layers.1.self_attn", head) for head in range(6)]
    with torch.no_grad(), regard.edit(model, {"layers.1.self_attn": regard.edits.mute(4)}):
        expected = sum(loss(model, batch) for batch in batches) / 2
    assert found.heads[4].loss == pytest.approx(float(expected), rel=1e-5)


def test_rollout_of_a_vision_transformer() -> None:
    model = awake(SUBJECTS["vit"].build())
    with torch.no_grad(), regard.record(model) as recording:
        model(**SUBJECTS["vit"].inputs())
    rows = torch.eye(10)
    for address in recording:
        rows = (recording[address].weights(example=1).mean(dim=0) / 2 + torch.eye(10) / 2) @ rows
    landed = recording.rollout(example=1, rows=0)
    torch.testing.assert_close(landed.weights, rows[0], atol=1e-5, rtol=0)
    assert landed.key_axis == recording.axes["image"][1]


def test_statistics_of_shared_keys_and_a_budget() -> None:
    model = awake(SUBJECTS["llama"].build())
    given = text(padded=0)
    with torch.no_grad():
        with regard.record(model) as recording:
            model(**given)
        with regard.record(model, budget="20KB") as spilled:
            model(**given)
    for address in recording:
        weights = recording[address].weights()
        entropy = torch.special.entr(weights).sum(-1)
        torch.testing.assert_close(recording[address].entropy(), entropy, atol=1e-5, rtol=1e-5)
        assert torch.equal(spilled[address].weights(), weights)
