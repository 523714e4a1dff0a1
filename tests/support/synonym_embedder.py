"""An embedder that separate processes can import with few dependencies."""

SENSES = ["dog puppy hound", "car automobile vehicle", "rain shower storm", "cash money wage"]


class Senses:
    """Knows a few synonyms, and nothing else."""

    def __init__(self, name="senses-1", extra=0):
        self.name, self.extra, self.texts, self.closed = name, extra, [], False

    async def embed(self, texts):
        self.texts += texts
        return [self.vector(text) for text in texts]

    def vector(self, text):
        found = [sum(text.lower().count(word) for word in s.split()) for s in SENSES]
        return [*found, 0.3, *[0.0] * self.extra]

    async def close(self):
        self.closed = True
