"""Everything about a training run that is neither model nor data."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from regard.core.config import Config
from regard.core.errors import ConfigError


class TrainingConfig(Config):
    """How to train, for how long, and what to keep. Whichever budget is used up first ends the run."""

    seed: int = Field(default=0, ge=0)
    """Decides dropout and every other draw during training; the same seed gives the same weights."""

    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """`auto` is bfloat16 where the device multiplies it natively, else float32. Weights stay in float32."""

    max_epochs: float | None = Field(default=10, gt=0)
    """Stop after so many passes over the data; a fraction such as 0.5 ends within an epoch."""

    max_steps: int | None = Field(default=None, gt=0)
    """Stop after so many updates of the weights."""

    max_minutes: float | None = Field(default=None, gt=0)
    """Stop after so much time, counted over all sittings of a resumed run."""

    accumulate: int = Field(default=1, ge=1)
    """Batches whose gradients are added up for one update; `k` of them equal one batch `k` times as large."""

    clip_norm: float | None = Field(default=1.0, gt=0)
    """Gradients are scaled down to this norm where theirs is larger; none leaves them alone."""

    optimizer: str = "adamw"
    """A name from `regard.training.optimizers`: adamw or sgd."""

    learning_rate: float = Field(default=1e-3, gt=0)
    """The highest learning rate, reached when warming up is over."""

    betas: tuple[float, float] = (0.9, 0.98)
    """AdamW's decay of the mean and of the squared gradient; SGD takes the first one as its momentum."""

    eps: float = Field(default=1e-9, gt=0)
    """AdamW's guard against division by zero."""

    weight_decay: float = Field(default=0.0, ge=0)
    """Decoupled weight decay of the matrices; biases, norms and vectors never decay."""

    layer_decay: float = Field(default=1.0, gt=0, le=1)
    """Fine-tuning: each layer learns at so many times the rate of the layer above it; 1 gives all the same rate."""

    schedule: str = "inverse_root"
    """A name from `regard.training.schedules`: inverse_root, cosine, linear or constant."""

    warmup_steps: int = Field(default=0, ge=0)
    """Updates over which the learning rate rises in a straight line from zero."""

    validate_every: float | None = Field(default=1.0, gt=0)
    """Epochs between two validations; 0.5 is twice an epoch. None validates only at the end."""

    metric: str = "loss"
    """Which of the numbers that validation returns decides what is best."""

    lower_is_better: bool = True
    """True for a loss or an error rate, false for BLEU or accuracy."""

    patience: int | None = Field(default=None, ge=1)
    """Stop after so many validations in a row without a new best."""

    average_last: int = Field(default=1, ge=1)
    """At the end, average the weights of the last so many validations into `checkpoints/averaged`; 1 does not."""

    checkpoint_every_steps: int | None = Field(default=None, ge=1)
    """Save after so many updates, besides the save at each validation."""

    checkpoint_every_minutes: float | None = Field(default=10, gt=0)
    """Save after so much time without a save, besides the save at each validation."""

    log_every: int = Field(default=50, ge=1)
    """Updates between two lines of `metrics.jsonl`."""

    record_every: int | None = Field(default=None, ge=1)
    """Updates between two recordings, in `film/`, of where the model looks in examples that stay the same."""

    tensorboard: bool = True
    """Write TensorBoard events beside `metrics.jsonl`."""

    threads: int | None = Field(default=None, ge=1)
    """Processor threads of torch; none leaves torch's own choice."""

    def check(self) -> None:
        """Refuses what each option alone allows, but not together."""
        if self.max_epochs is None and self.max_steps is None and self.max_minutes is None and self.patience is None:
            raise ConfigError(
                "This training would never end: give at least one of max_epochs, max_steps, max_minutes and patience."
            )
        if self.patience is not None and self.validate_every is None:
            raise ConfigError("patience counts validations, but validate_every is none: give it, e.g. 1.0 (epochs).")
