"""Multi30k: 29,000 captions of Flickr pictures in English, German, French and Czech (Elliott et al., 2016).

Task 1 of github.com/multi30k/dataset, raw text: every sentence in one language is the translation of the sentence with
the same number in the others. 1,014 more for validation; the test sets are named by their year and origin.

The captions come from Flickr30k. They are for non-commercial research and teaching only, and the use of the pictures
must keep to Flickr's terms; nothing of the data is part of this package.
"""

from __future__ import annotations

from typing import Final

from regard.core.errors import ConfigError, UnknownNameError
from regard.data.download import DataFile, Fetch, find_or_fetch
from regard.data.text import PairPaths

_COMMIT: Final = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"
MIRRORS = (
    f"https://raw.githubusercontent.com/multi30k/dataset/{_COMMIT}/data/task1",
    f"https://cdn.jsdelivr.net/gh/multi30k/dataset@{_COMMIT}/data/task1",
)

LANGUAGES = ("en", "de", "fr", "cs")
TRAIN = "train"
VALID = "val"
TESTS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")

_DIGESTS = {
    "train.en": (
        "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
        "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
    ),
    "train.de": (
        "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
        "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
    ),
    "train.fr": (
        "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
        "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d",
    ),
    "train.cs": (
        "a65adb8b32e3bc664f21ecba7a6e7f6950fd1f405e135f7c312faabdb6255077",
        "2be68b38c8d586ff4f54eb13cc6e1baaaa053695b3f070d3038303a47f2268da",
    ),
    "val.en": (
        "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
        "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
    ),
    "val.de": (
        "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
        "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
    ),
    "val.fr": (
        "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
        "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc",
    ),
    "val.cs": (
        "b63226e05c4bd5dd6a42897d74b86a1b9d2c31498252c572b1ea7f7996927fcc",
        "d53827e469b0a1ca8d57e9e26b2b64c4bc4b33f5479c7b03ae87ae5c882c3e33",
    ),
    "test_2016_flickr.en": (
        "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
        "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
    ),
    "test_2016_flickr.de": (
        "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
        "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
    ),
    "test_2016_flickr.fr": (
        "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
        "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6",
    ),
    "test_2016_flickr.cs": (
        "200a4a74cc9560f051924abb9803be008d1908d77f747e9141aeb86dfd2797f1",
        "45adb85f688de8407fddcbe1b36dca15d12aab868149b337e2576f2d6d2ff8d8",
    ),
    "test_2017_flickr.en": (
        "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074",
        "ce1450ddc5ab0834502579d77a170849952e15a2938b34cc503bdc25ebb4fb98",
    ),
    "test_2017_flickr.de": (
        "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee",
        "c3078bc3b36808bf9d20eb2347ed6137016179ef59ec0d2b9b8ecc3fb2880081",
    ),
    "test_2017_flickr.fr": (
        "3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496",
        "6f3764e31dac41e9455e612958bcfd4e877c5e15cd66df2c2b2be6d9bd83e5b6",
    ),
    "test_2017_mscoco.en": (
        "aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58",
        "43051fdfa86fd5395182e718a94ca67b1b227b9f7c79596ff0f6b813216981d2",
    ),
    "test_2017_mscoco.de": (
        "799e4854c25d601cb6cb6be29eabe5667734c61ace2f495e03e429031a0bc338",
        "58277df3c75f92f7145a11b910b553d1cf82c439249d4dc237c899609eafac22",
    ),
    "test_2017_mscoco.fr": (
        "754f3072ba9f124569ba5258b32730fc1d214bbf8e0c6dfb2b74401676220db0",
        "39cde3f43f32b0a6bf29ce4917a46329ff32e53070c2fac87506695a740ae0a0",
    ),
    "test_2018_flickr.en": (
        "ef4f4844037d4c5dea75c9a8ed5fd78905967a26f67c255e230cc9780032654d",
        "4e585c2dd525911a6ea7730e9d0b516239af3f1b1ffae6a2130223cfb639f25e",
    ),
    "test_2018_flickr.de": (
        "ddd0130c7d97482dc5197a02141dae8dd79f20f03586c480d675c09a32daf608",
        "39fcc8b3331d76fb42d648d019c6898b0d5e58baac87bc2a0bb93f44ec8db207",
    ),
    "test_2018_flickr.fr": (
        "fb2b83fcceb937a4f7e3e93c1c51c22aba92f1e342391e6b5ba392b16a920501",
        "234b4a887da0da4801a3e2c6f21336231ff7dd46daeb80cfa1b551c8bbb78239",
    ),
    "test_2018_flickr.cs": (
        "7d0a9db904f94c554a8c58049a9f3a5357c27f46cc3d710d70cb0b4a2585b8c2",
        "1db59fe6980c9b3f9bade65122a985e71150214837d76f4768a5a8384c0b2dc7",
    ),
}
"""For each file the SHA-256 as published (gzip), and unpacked."""


def data_file(part: str, language: str) -> DataFile:
    """The file of one part in one language; both names are checked."""
    if language not in LANGUAGES:
        raise UnknownNameError("language in Multi30k", language, LANGUAGES)
    parts = [name for name in (TRAIN, VALID, *TESTS) if f"{name}.{language}" in _DIGESTS]
    if part not in parts:
        raise UnknownNameError(f"{language} part of Multi30k", part, parts)
    packed, unpacked = _DIGESTS[f"{part}.{language}"]
    return DataFile(f"raw/{part}.{language}.gz", packed, unpacked)


def multi30k_paths(part: str, source: str, target: str, *, fetch: Fetch | None = None) -> PairPaths:
    """The two files of a part (`TRAIN`, `VALID` or one of `TESTS`), found on this machine or downloaded."""
    if source == target:
        raise ConfigError(f"Source and target language are both {source!r}; choose two of {', '.join(LANGUAGES)}.")
    files = [data_file(part, language) for language in (source, target)]
    return PairPaths(*find_or_fetch("multi30k", files, MIRRORS, fetch=fetch))
