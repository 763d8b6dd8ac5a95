"""The translation task on tiny models: batches, loss, translations and the alignment behind them."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from regard.core.errors import ConfigError, DataError
from regard.core.special import BOS, EOS, PAD
from regard.data.tokenized import Alignment, TokenizedCorpus
from regard.data.tokenizers import train_tokenizer
from regard.models.cho import ChoConfig, ChoEncoderDecoder
from regard.models.rnnsearch import RNNSearch, RNNSearchConfig
from regard.models.transformer import Transformer, TransformerConfig
from regard.recording import record
from regard.tasks.decoding import DecodingConfig
from regard.tasks.translation import TranslationBatches, TranslationConfig, TranslationTask
from regard.tasks.translation.batches import collate, padded

PAIRS = [
    ("a red house", "une maison rouge"),
    ("the cat sleeps", "le chat dort"),
    ("the red cat sees a house", "le chat rouge voit une maison"),
    ("she reads", "elle lit"),
    ("the house", "la maison"),
]


@pytest.fixture
def tokenizers():
    sources, targets = zip(*PAIRS, strict=True)
    return train_tokenizer("words", sources, 100), train_tokenizer("words", targets, 100)


@pytest.fixture
def task(tokenizers) -> TranslationTask:
    return TranslationTask(TranslationConfig(), *tokenizers, tokenized=True)


def make(kind: str, task: TranslationTask):
    torch.manual_seed(1)
    sizes = (task.source_tokenizer.size, task.target_tokenizer.size)
    if kind == "cho":
        return ChoEncoderDecoder(ChoConfig(width=14, embedding_width=11), *sizes).eval()
    if kind == "rnnsearch":
        return RNNSearch(RNNSearchConfig(width=14, embedding_width=11, alignment_width=7), *sizes).eval()
    config = TransformerConfig(
        width=22,
        num_heads=2,
        num_encoder_blocks=3,
        num_decoder_blocks=3,
        feed_forward_width=13,
        tied="target",
    )
    return Transformer(config, *sizes).eval()


def test_padding_and_special_tokens() -> None:
    assert padded([[5, 6, 7], [8]], first=BOS).tolist() == [[BOS, 5, 6, 7], [BOS, 8, PAD, PAD]]
    batch = collate([([5, 6], [7]), ([5], [8, 9, 10])])
    assert batch.source.tolist() == [[5, 6, EOS], [5, EOS, PAD]]
    assert batch.target_in.tolist() == [[BOS, 7, PAD, PAD], [BOS, 8, 9, 10]]
    assert batch.target_out.tolist() == [[7, EOS, PAD, PAD], [8, 9, 10, EOS]]


def test_batches_count_what_the_loss_sums_over(task: TranslationTask, tokenizers) -> None:
    corpus = TokenizedCorpus.from_pairs(PAIRS, *tokenizers)
    batches = TranslationBatches(corpus, token_budget=20, seed=3)
    model = make("rnnsearch", task)
    for indices in batches.epoch(0):
        assert task.loss(model, batches.collate(indices)).count == batches.count(indices)


def test_loss_is_the_mean_over_tokens_and_smooths_only_in_training(task: TranslationTask) -> None:
    model = make("transformer", task)
    batch = collate([([5, 6], [7]), ([5], [8, 9, 10])])
    logits = model(batch.source, batch.target_in).logits.flatten(0, 1)
    targets = batch.target_out.flatten()
    plain = F.cross_entropy(logits, targets, ignore_index=PAD, reduction="sum")
    torch.testing.assert_close(task.loss(model, batch).total, plain)
    model.train()
    for module in model.modules():
        if hasattr(module, "dropout_rate"):
            module.dropout_rate = 0.0
    smooth = F.cross_entropy(logits, targets, ignore_index=PAD, reduction="sum", label_smoothing=0.1)
    torch.testing.assert_close(task.loss(model, batch).total, smooth)


@pytest.mark.parametrize("kind", ["rnnsearch", "transformer"])
def test_alignments_are_the_attention_while_searching(kind: str, task: TranslationTask) -> None:
    model = make(kind, task)
    source = task.source_tokenizer.encode("the red cat sees a house")
    (hypotheses,) = task.decode(model, [source], DecodingConfig(method="greedy", max_length=6))
    tap = task.alignment_tap(model)
    target = hypotheses[0].tokens
    shown = task.record(model, [source], [target], tap)[tap].weights(example=0).mean(dim=0)
    tokens = torch.tensor([[*source, EOS]])
    with torch.inference_mode(), record(model, tap) as searching:
        state = model.start(model.encode(tokens), 9)
        for token in (BOS, *target):
            _, state = model.step(torch.tensor([[token]]), state)
    torch.testing.assert_close(shown, searching[tap].weights(example=0).mean(dim=0), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", ["cho", "rnnsearch", "transformer"])
def test_translations_keep_their_order_and_their_batch_does_not_matter(kind: str, task: TranslationTask) -> None:
    model = make(kind, task)
    sentences = ["the red cat sees a house", "", "she reads", "the house"]
    together = task.translate(model, sentences)
    alone = [task.translate(model, [sentence])[0] for sentence in sentences]
    assert [one.source for one in together] == sentences
    assert [one.text for one in together] == [one.text for one in alone]
    assert [one.links for one in together] == [one.links for one in alone]
    assert together[1].text == ""
    if kind == "cho":
        assert together[0].pharaoh is None
    else:
        assert together[0].weights.shape == (len(together[0].text.split()), 7)
        np.testing.assert_allclose(together[0].weights.sum(axis=1), 1.0, rtol=1e-5)


def test_n_best_lists_come_with_the_translation(task: TranslationTask) -> None:
    decoding = DecodingConfig(beam_width=3, num_best=3, max_length=5)
    (found,) = task.translate(make("rnnsearch", task), ["the house"], decoding)
    assert len(found.alternatives) == 2
    assert found.score >= found.alternatives[0][1] >= found.alternatives[1][1]
    assert [entry["score"] for entry in found.to_json()["alternatives"]] == [score for _, score in found.alternatives]


def test_only_unknown_words_are_refused_with_the_sentence(task: TranslationTask) -> None:
    with pytest.raises(DataError, match=r"Sentence 2 \('qwerty asdf'\)"):
        task.translate(make("rnnsearch", task), ["the house", "qwerty asdf"])


def test_evaluation_has_signatures_lengths_and_the_error_rate(task: TranslationTask, tokenizers) -> None:
    gold = [Alignment(frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)})) for _ in PAIRS]
    corpus = TokenizedCorpus.from_pairs(PAIRS, *tokenizers, gold)
    result = task.evaluate(make("rnnsearch", task), corpus, DecodingConfig(method="greedy"))
    assert result["sentences"] == len(PAIRS)
    assert "tok:none" in result["bleu_signature"]
    assert result["bleu_by_length"]["1-10"]["sentences"] == len(PAIRS)
    assert 0.0 <= result["aer"] <= 1.0
    assert result["tokens_per_second"] > 0
    assert "aer" not in task.evaluate(make("cho", task), corpus, DecodingConfig(method="greedy"))


def test_the_tap_of_the_alignment_can_be_chosen(task: TranslationTask, tokenizers) -> None:
    model = make("transformer", task)
    assert task.alignment_tap(model) == "decoder.1.cross"
    config = TranslationConfig(alignment_tap="decoder.0.cross")
    chosen = TranslationTask(config, *tokenizers)
    assert chosen.alignment_tap(model) == "decoder.0.cross"
    wrong = TranslationTask(TranslationConfig(alignment_tap="encoder.0.attention"), *tokenizers)
    with pytest.raises(ConfigError, match=r"decoder\.0\.cross"):
        wrong.alignment_tap(model)
    with pytest.raises(ConfigError, match="no attention"):
        task.alignment_tap(make("cho", task))


def test_a_recording_of_pairs_knows_its_words(task: TranslationTask) -> None:
    source, target = task.source_tokenizer.encode("she reads"), task.target_tokenizer.encode("elle lit")
    recording = task.record(make("transformer", task), [source], [target])
    cross = recording["decoder.2.cross"]
    assert cross.key_axes[0].labels() == ["she", "reads", "<eos>"]
    assert cross.query_axes[0].labels() == ["elle", "lit", "<eos>"]
    assert cross.weights(example=0, head=1).shape == (3, 3)
