"""What is in a picture: one class of many."""

from regard.tasks.classification.config import ClassificationConfig
from regard.tasks.classification.task import ClassificationTask, Prediction

__all__ = ["ClassificationConfig", "ClassificationTask", "Prediction"]
