// Which messages a sentence most likely came from, by the words they share. Pure.

const PARTED = new Intl.Segmenter('und', { granularity: 'word' });
const ENDED = new Intl.Segmenter('und', { granularity: 'sentence' });
const LEAST = 0.3; // of a sentence's words, by weight
const NEARLY = 0.7; // of the best share
const MOST = 3;

/** The different words of a text, without case. */
export function words(text) {
  const found = new Set();
  for (const { segment, isWordLike } of PARTED.segment(text.toLowerCase())) if (isWordLike) found.add(segment);
  return found;
}

/** A speaker's label in a summary: the name's first words. */
function called(name) {
  return name.replaceAll(':', ' ').trim().split(/\s+/).slice(0, 4).join(' ').slice(0, 40).trim();
}

/** The sentences of a summary, without the speakers in front: their roles, or their `names`. */
export function sentences(text, names = []) {
  const speakers = ['User', 'Assistant', 'System', 'Tool', ...new Set(names.map(called))].filter(Boolean);
  const escaped = speakers.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const label = new RegExp(`^\\s*(?:[-*•]\\s+)?(?:(?:${escaped.join('|')}):)?\\s*`, 'i');
  return text.split('\n').flatMap((line) => [...ENDED.segment(line.replace(label, ''))])
    .map((part) => part.segment.trim()).filter((sentence) => words(sentence).size > 0);
}

/**
 * For each sentence of `text` the entries that share its words: `[{ sentence, from: [{ seq, share }] }]`.
 * A word counts the more, the fewer entries have it; one that none has counts like the rarest.
 */
export function sources(text, entries) {
  const said = entries.map((entry) => ({ seq: entry.seq, words: words(entry.text) }));
  const spread = new Map();
  for (const one of said) for (const word of one.words) spread.set(word, (spread.get(word) || 0) + 1);
  const weight = (word) => Math.log(1 + entries.length / (spread.get(word) || 1));
  return sentences(text, entries.map((entry) => entry.name || '')).map((sentence) => {
    const wanted = [...words(sentence)];
    const whole = wanted.reduce((total, word) => total + weight(word), 0) || 1;
    const shares = said.map((one) => ({ seq: one.seq, share: wanted.reduce((total, word) => total + (one.words.has(word) ? weight(word) : 0), 0) / whole }));
    const best = shares.sort((a, b) => b.share - a.share || a.seq - b.seq)[0]?.share || 0;
    return { sentence, from: shares.filter((one) => one.share >= LEAST && one.share >= NEARLY * best).slice(0, MOST) };
  });
}
