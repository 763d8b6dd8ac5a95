"""Training: the loop and what it keeps. Knows no model and no task by name.

`Trainer(model, loss_function, batches, validate=..., config=TrainingConfig(), folder=RunFolder.create(...)).fit()`
"""

from regard.training.checkpoints import average, load_model_weights
from regard.training.config import TrainingConfig
from regard.training.optimizers import optimizers
from regard.training.run_folder import RunFolder
from regard.training.schedules import schedules
from regard.training.seeding import seed_everything
from regard.training.trainer import Trainer, TrainingResult

__all__ = [
    "RunFolder",
    "Trainer",
    "TrainingConfig",
    "TrainingResult",
    "average",
    "load_model_weights",
    "optimizers",
    "schedules",
    "seed_everything",
]
