"""A folder for a name on the hub, fetched once and kept in the hub library's own cache."""

from __future__ import annotations

import re
from pathlib import Path

from regard.core.errors import CheckpointError

NAME = re.compile(r"(?:hf[-_]hub:)?(?P<name>[\w.-]+/[\w.-]+)")
PATTERNS = ["config.json", "preprocessor_config.json", "model*.safetensors", "model.safetensors.index.json"]
OLD_PATTERNS = ["pytorch_model*.bin", "pytorch_model.bin.index.json"]


def located(source: str | Path) -> Path:
    """The path itself where there is something, else what the hub has under that name."""
    path = Path(source).expanduser()
    if path.exists():
        return path
    match = NAME.fullmatch(str(source))
    if match is None:
        raise CheckpointError(f"There is no file or folder {source}, and it is no name on a hub (OWNER/MODEL) either.")
    return _fetched(match["name"])


def _fetched(name: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError:
        raise CheckpointError(
            f"There is no file or folder {name} here. To fetch the model of that name, `pip install huggingface_hub`."
        ) from None
    try:
        folder = Path(snapshot_download(name, allow_patterns=PATTERNS))
        if not any(folder.glob("model*.safetensors")):
            folder = Path(snapshot_download(name, allow_patterns=PATTERNS + OLD_PATTERNS))
    except (HfHubHTTPError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CheckpointError(
            f"There is no file or folder {name} here, and no model of that name could be fetched ({reason}). Check the "
            "name and the network, or bring the model's folder here and give its path."
        ) from error
    return folder
