"""Translation between two languages."""

from regard.tasks.translation.batches import TranslationBatch, TranslationBatches
from regard.tasks.translation.config import TranslationConfig
from regard.tasks.translation.task import Translation, TranslationTask

__all__ = ["Translation", "TranslationBatch", "TranslationBatches", "TranslationConfig", "TranslationTask"]
