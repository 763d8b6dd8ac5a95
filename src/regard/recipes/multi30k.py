"""Multi30k, test 2016 Flickr: 29,000 captions, translated by models of about five million parameters.

Sizes and budgets are for two processor cores and three quarters of an hour; results are in `results/`.
"""

from __future__ import annotations

from regard.core.models import ModelConfig
from regard.data.config import DataConfig
from regard.models.cho import ChoConfig
from regard.models.rnnsearch import RNNSearchConfig
from regard.models.transformer import TransformerConfig
from regard.recipes.config import recipes
from regard.recipes.translating import TranslationRunConfig
from regard.tasks.decoding import DecodingConfig
from regard.tasks.translation import TranslationConfig
from regard.training.config import TrainingConfig


def _multi30k(
    recipe: str, language: str, model: ModelConfig, training: TrainingConfig, **expected: float
) -> TranslationRunConfig:
    return TranslationRunConfig(
        recipe=recipe,
        model=model,
        data=DataConfig(
            source="multi30k", target_language=language, joint=True, vocabulary_size=5000, token_budget=2048
        ),
        task=TranslationConfig(label_smoothing=0.1, decoding=DecodingConfig(beam_width=5)),
        training=training,
        expected=expected,
    )


def _transformer(recipe: str, language: str, **expected: float) -> TranslationRunConfig:
    """A deep encoder and a shallow decoder."""
    model = _pre_norm(width=256, num_encoder_blocks=4, num_decoder_blocks=2)
    return _multi30k(recipe, language, model, _training(max_epochs=36, warmup_steps=500), **expected)


def _pre_norm(**sizes: int) -> TransformerConfig:
    return TransformerConfig(num_heads=4, feed_forward_width=512, norm="pre", dropout_rate=0.3, **sizes)


def _training(max_epochs: float, warmup_steps: int) -> TrainingConfig:
    return TrainingConfig(
        max_epochs=max_epochs, learning_rate=2e-3, schedule="cosine", warmup_steps=warmup_steps, average_last=3
    )


def _recurrent(recipe: str, language: str, model: ModelConfig, **expected: float) -> TranslationRunConfig:
    return _multi30k(recipe, language, model, _training(max_epochs=16, warmup_steps=300), **expected)


def _rnnsearch() -> RNNSearchConfig:
    return RNNSearchConfig(width=384, embedding_width=256, alignment_width=256, dropout_rate=0.3)


@recipes.register("transformer-multi30k-de")
def transformer_multi30k_de() -> TranslationRunConfig:
    """A small Transformer, English to German"""
    # Smaller and shorter than the others, whose sizes came later: its published result is of these.
    model = _pre_norm(width=192, num_encoder_blocks=3, num_decoder_blocks=3)
    training = _training(max_epochs=22, warmup_steps=500)
    return _multi30k("transformer-multi30k-de", "de", model, training, bleu=37.0)


@recipes.register("transformer-multi30k-fr")
def transformer_multi30k_fr() -> TranslationRunConfig:
    """A small Transformer, English to French"""
    return _transformer("transformer-multi30k-fr", "fr", bleu=57.0)


@recipes.register("transformer-multi30k-cs")
def transformer_multi30k_cs() -> TranslationRunConfig:
    """A small Transformer, English to Czech"""
    return _transformer("transformer-multi30k-cs", "cs")


@recipes.register("rnnsearch-multi30k-de")
def rnnsearch_multi30k_de() -> TranslationRunConfig:
    """RNNsearch, English to German"""
    return _recurrent("rnnsearch-multi30k-de", "de", _rnnsearch(), bleu=34.0)


@recipes.register("rnnsearch-multi30k-fr")
def rnnsearch_multi30k_fr() -> TranslationRunConfig:
    """RNNsearch, English to French"""
    return _recurrent("rnnsearch-multi30k-fr", "fr", _rnnsearch(), bleu=54.0)


@recipes.register("cho-multi30k-fr")
def cho_multi30k_fr() -> TranslationRunConfig:
    """RNNsearch's encoder and decoder without attention, English to French"""
    model = ChoConfig(width=384, embedding_width=256, bidirectional=True, dropout_rate=0.3)
    return _recurrent("cho-multi30k-fr", "fr", model)
