"""A generated English-French corpus with gold word alignments, for demos, tests and alignment error rates.

    from regard.data.embedded import generate
    pair = generate(1, seed=1, split="train")[0]
    pair.source_text, pair.target_text, pair.pharaoh()

The grammar is small and real: agreement in gender and number, adjectives after (a few before) the noun, negation
around the verb, object pronouns before it, compounds turned round, the perfect with avoir and être, passives,
relative clauses, reports, conditions, questions, coordination, dates, elision and contraction. Every English
sentence has exactly one French, and the French can be read off the English.

How it is made, from the bottom: `nouns`, `adjectives`, `verbs`, `determiners`, `closed` are the words;
`phrase` and `french` join them with their alignment; `noun_phrases`, `verb_phrases`, `clauses` are the rules;
`dice`, `describing`, `happening`, `telling` choose; `generating` deals the sentences out to the splits.
"""

from regard.data.embedded.deck import DECK_PAIR
from regard.data.embedded.generating import MAX_TOKENS, MIN_TOKENS, Split, generate, sentences
from regard.data.embedded.pairs import AlignedPair

__all__ = ["DECK_PAIR", "MAX_TOKENS", "MIN_TOKENS", "AlignedPair", "Split", "generate", "sentences"]
