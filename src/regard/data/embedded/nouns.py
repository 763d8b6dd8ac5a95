"""The nouns, by what they stand for, so that sentences make sense: ministers sign, owls do not.

A row is English singular, English plural, French singular, gender, and the French plural where it is irregular.
"""

from __future__ import annotations

from dataclasses import dataclass

from regard.data.embedded import french

TABLE = {
    "person": """
        man men homme m | woman women femme f | boy boys garçon m | girl girls fille f | child children enfant m
        teacher teachers professeur m | nurse nurses infirmière f | king kings roi m
        queen queens reine f | actress actresses actrice f | mother mothers mère f | sister sisters sœur f
        student students étudiant m | friend friends ami m
        minister ministers ministre m | engineer engineers ingénieur m""",
    "animal": """
        dog dogs chien m | cat cats chat m | horse horses cheval m | bird birds oiseau m | owl owls hibou m hiboux
        elephant elephants éléphant m""",
    "object": """
        car cars voiture f | bicycle bicycles vélo m | table tables table f
        chair chairs chaise f | door doors porte f | window windows fenêtre f | key keys clé f
        instrument instruments instrument m | hat hats chapeau m | box boxes boîte f""",
    "place": """
        house houses maison f | apartment apartments appartement m | garden gardens jardin m
        school schools école f | church churches église f
        village villages village m | city cities ville f | hotel hotels hôtel m
        hospital hospitals hôpital m | museum museums musée m | castle castles château m
        factory factories usine f | bridge bridges pont m""",
    "document": """
        agreement agreements accord m | letter letters lettre f | report reports rapport m | law laws loi f
        book books livre m | contract contracts contrat m | treaty treaties traité m | article articles article m
        decision decisions décision f""",
    "event": """
        meeting meetings réunion f | conference conferences conférence f | concert concerts concert m
        election elections élection f | festival festivals festival m festivals""",
    "institution": """
        Area Areas zone f | Union Unions union f | Community Communities communauté f | Council Councils conseil m
        Committee Committees comité m | Agency Agencies agence f""",
}

SUBKINDS = {
    "movable": "chair table bicycle key instrument hat box",
    "buildable": "house apartment school church hotel hospital museum castle factory bridge table chair",
    "inside": "house apartment garden school church village city hotel hospital museum castle factory",
    "goal": "school church hotel hospital museum castle factory",
    "landmark": "house school church hotel hospital museum castle factory bridge",
    "surface": "table chair box bridge car",
    "writing": "letter report book contract article law",
    "ruling": "agreement report law contract treaty article decision letter",
    "subject": "agreement report law book treaty article decision conference",
    "nobody's": "man woman",
    "theme": "museum castle city school hospital election horse bird elephant",
}
"""Smaller sets for single verbs and prepositions: what one can open, build, be inside of, write a report on."""

COMPOUNDS = {
    ("stone", "pierre"): "bridge house church castle table",
    ("brick", "brique"): "house school church factory",
    ("winter", "hiver"): "concert festival hat garden",
    ("summer", "été"): "concert festival school house hat",
    ("garden", "jardin"): "table chair door",
    ("kitchen", "cuisine"): "table chair window door",
    ("mountain", "montagne"): "village hotel house school",
    ("history", "histoire"): "book museum teacher article conference",
    ("music", "musique"): "teacher school festival book instrument",
    ("art", "art"): "museum school teacher book",
    ("peace", "paix"): "agreement treaty conference",
    ("village", "village"): "school church festival",
    ("family", "famille"): "house car",
}
"""A noun before a noun is turned round: "stone bridge", "pont de pierre"."""


@dataclass(frozen=True)
class Noun:
    english: str
    english_plural: str
    french: str
    french_plural: str
    feminine: bool
    kind: str

    def in_english(self, plural: bool) -> str:
        return self.english_plural if plural else self.english

    def in_french(self, plural: bool) -> str:
        return self.french_plural if plural else self.french


def _read_table() -> dict[str, tuple[Noun, ...]]:
    nouns: dict[str, tuple[Noun, ...]] = {}
    for kind, text in TABLE.items():
        rows = [row.split() for line in text.strip().splitlines() for row in line.split("|")]
        nouns[kind] = tuple(
            Noun(row[0], row[1], row[2], row[4] if len(row) > 4 else french.plural(row[2]), row[3] == "f", kind)
            for row in rows
        )
    return nouns


NOUNS = _read_table()
BY_ENGLISH = {noun.english: noun for nouns in NOUNS.values() for noun in nouns}
NOUNS.update({name: tuple(BY_ENGLISH[english] for english in text.split()) for name, text in SUBKINDS.items()})

Modifier = tuple[str, str]
MODIFIERS: dict[Noun, tuple[Modifier, ...]] = {
    noun: tuple(modifier for modifier, heads in COMPOUNDS.items() if noun.english in heads.split())
    for noun in BY_ENGLISH.values()
}
