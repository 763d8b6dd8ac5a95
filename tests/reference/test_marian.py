"""`transformers`' Marian with random weights, copied into our Transformer: equal logits, equal translations."""

import pytest
import torch
from torch import nn
from transformers import MarianConfig, MarianMTModel

from regard.core.special import BOS, EOS, PAD
from regard.models.transformer import Transformer
from regard.pretrained.marian import marian_to_transformer
from regard.tasks.decoding import DecodingConfig, decode

VOCABULARY, LIMIT = 97, 13


def make(seed: int, activation: str = "relu", shared: bool = True) -> tuple[MarianMTModel, Transformer]:
    torch.manual_seed(seed)
    config = MarianConfig(
        vocab_size=VOCABULARY,
        decoder_vocab_size=VOCABULARY,
        d_model=32,
        encoder_layers=3,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=53,
        decoder_ffn_dim=53,
        activation_function=activation,
        scale_embedding=True,
        share_encoder_decoder_embeddings=shared,
        max_position_embeddings=64,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    marian = MarianMTModel(config).eval()
    for name, weight in marian.named_parameters():
        # At the usual weights a source only repeats one token, or all sources have one translation.
        if "embed_positions" not in name:
            std = 0.3 if weight.dim() == 1 else 0.5
            nn.init.normal_(weight, mean=1.0 if "layer_norm.weight" in name else 0.0, std=std)
    marian.final_logits_bias.normal_(std=0.5)
    our_config, weights = marian_to_transformer(marian.state_dict(), config.to_dict())
    ours = Transformer(our_config, VOCABULARY, VOCABULARY)
    ours.load_state_dict(weights)
    return marian, ours.eval()


def sentences(seed: int, count: int = 11) -> torch.Tensor:
    """Padded sources of 2 to 12 tokens."""
    generator = torch.Generator().manual_seed(seed)
    source = torch.randint(4, VOCABULARY, (count, 12), generator=generator)
    for row, length in enumerate(torch.randint(2, 13, (count,), generator=generator).tolist()):
        source[row, length - 1] = EOS
        source[row, length:] = PAD
    return source


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu", "swish"])
def test_logits(activation: str, shared: bool) -> None:
    marian, ours = make(1, activation, shared)
    source, target = sentences(1), torch.randint(4, VOCABULARY, (11, 7))
    with torch.no_grad():
        theirs = marian(
            input_ids=source, attention_mask=(source != PAD).long(), decoder_input_ids=target, use_cache=False
        ).logits
        torch.testing.assert_close(ours(source, target).logits, theirs, atol=1e-5, rtol=1e-5)


def test_positions_beyond_the_table() -> None:
    """Marian has no more positions than its table; ours go on with the same formula."""
    _, ours = make(2)
    table = ours.source_positions.table
    longer = ours.source_positions(torch.zeros(1, 70, 32))
    torch.testing.assert_close(longer[0, :64], table)
    assert not longer[0, 64:].eq(0).all()


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("seed", range(5))
def test_translations(width: int, seed: int) -> None:
    marian, ours = make(seed)
    source = sentences(seed)
    written = marian.generate(
        input_ids=source,
        attention_mask=(source != PAD).long(),
        num_beams=width,
        do_sample=False,
        length_penalty=1.0,
        early_stopping=False,
        max_new_tokens=LIMIT,
        bad_words_ids=[[PAD], [BOS]],
    )
    config = DecodingConfig(
        method="greedy" if width == 1 else "beam",
        beam_width=width,
        max_length_ratio=0.0,
        max_length_extra=LIMIT,
        max_length=LIMIT,
    )
    found = [list(hypotheses[0].tokens) for hypotheses in decode(ours, source, config)]
    expected = []
    for row in written[:, 1:].tolist():
        ended = row[: row.index(EOS)] if EOS in row else row
        expected.append([token for token in ended if token != PAD])
    assert found == expected
    assert len({tuple(row) for row in found}) > 2, "the translations should depend on the source"
