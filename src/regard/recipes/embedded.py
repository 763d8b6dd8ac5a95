"""The five translators on the generated English-French corpus: minutes on a laptop, alignments known."""

from __future__ import annotations

from regard.core.models import ModelConfig
from regard.data.config import DataConfig
from regard.models.cho import ChoConfig
from regard.models.luong import LuongConfig
from regard.models.rnnsearch import RNNSearchConfig
from regard.models.sutskever import SutskeverConfig
from regard.models.transformer import TransformerConfig
from regard.recipes.config import recipes
from regard.recipes.translating import TranslationRunConfig
from regard.tasks.translation import TranslationConfig
from regard.training.config import TrainingConfig


def _embedded(
    recipe: str, model: ModelConfig, *, learning_rate: float, warmup_steps: int, **expected: float
) -> TranslationRunConfig:
    return TranslationRunConfig(
        recipe=recipe,
        model=model,
        data=DataConfig(source="embedded", num_sentences=20_000, token_budget=800),
        task=TranslationConfig(label_smoothing=0.0),
        training=TrainingConfig(
            max_epochs=3,
            learning_rate=learning_rate,
            schedule="cosine",
            warmup_steps=warmup_steps,
            checkpoint_every_minutes=2,
        ),
        expected=expected,
    )


@recipes.register("rnnsearch")
def rnnsearch() -> TranslationRunConfig:
    """RNNsearch (Bahdanau) on the embedded corpus: the default of `regard demo`"""
    model = RNNSearchConfig(
        width=160, embedding_width=96, alignment_width=96, dropout_rate=0.0, initial_dropout_rate=0.8
    )
    return _embedded("rnnsearch", model, learning_rate=4e-3, warmup_steps=100, bleu=90.0, aer=0.15)


@recipes.register("cho")
def cho() -> TranslationRunConfig:
    """RNNsearch without search: everything goes through one fixed vector (Cho)"""
    model = ChoConfig(width=160, embedding_width=96, bidirectional=True, dropout_rate=0.0)
    return _embedded("cho", model, learning_rate=4e-3, warmup_steps=100)


@recipes.register("sutskever")
def sutskever() -> TranslationRunConfig:
    """Stacked LSTMs joined by one state (Sutskever) on the embedded corpus"""
    model = SutskeverConfig(width=160, embedding_width=96, dropout_rate=0.0)
    return _embedded("sutskever", model, learning_rate=4e-3, warmup_steps=100)


@recipes.register("luong")
def luong() -> TranslationRunConfig:
    """The attention decoder as deck E numbers its steps (Luong) on the embedded corpus"""
    model = LuongConfig(width=160, embedding_width=96, num_layers=1, dropout_rate=0.0)
    return _embedded("luong", model, learning_rate=4e-3, warmup_steps=100, bleu=90.0)


@recipes.register("transformer")
def transformer() -> TranslationRunConfig:
    """The Transformer on the embedded corpus"""
    model = TransformerConfig(
        width=128,
        num_heads=4,
        num_encoder_blocks=2,
        num_decoder_blocks=2,
        feed_forward_width=512,
        norm="pre",
        tied="target",
    )
    return _embedded("transformer", model, learning_rate=2e-3, warmup_steps=200, bleu=90.0)
