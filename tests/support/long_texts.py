"""Long texts of different sentences, with others planted in them."""

_SUBJECTS = ["garden", "orchard", "cellar", "attic", "meadow", "workshop", "harbor", "library"]
_THINGS = ["ladder", "lantern", "barrel", "bench", "carpet", "mirror", "shutter", "chimney"]
_DONE = ["painted", "moved", "repaired", "measured", "cleaned", "sold", "described", "weighed"]


def essay(sentences: int, planted: dict[int, str]) -> str:
    """So many sentences about nothing, and at these places others."""
    found = []
    for number in range(sentences):
        subject, thing, done = (
            words[(number * step + number // 8) % 8]
            for words, step in ((_SUBJECTS, 1), (_THINGS, 3), (_DONE, 5))
        )
        text = f"In the {subject} the old {thing} was {done} for the {number + 2}nd time this year."
        found.append(planted.get(number, text))
    return " ".join(found)
