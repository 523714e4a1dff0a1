// A list of any length: only what is near the window is in the document.
//
// Items are loaded and laid out a block at a time. A block that was never seen has a guessed height;
// once it is laid out it is measured, and what lies above the window is corrected without a jump.

import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { html } from './ui.js';

export const BLOCK = 40;
const GUESS = 90; // pixels of an item that nobody has seen
const BEYOND = 900; // pixels laid out above and below the window
const KEPT = 30; // blocks kept loaded

/**
 * `count` items; `load(first, last)` gives some of them, `item(one)` draws one.
 * `seen` = { seq, at } brings an item into the window. `end` is drawn behind the last one; as long as
 * the reader is at the bottom, the list stays there.
 */
export function Scroller({ count, load, item, seen, end, version, label }) {
  const box = useRef(null);
  const heights = useRef(new Map());
  const blocks = useRef(new Map());
  const nodes = useRef(new Map());
  const stuck = useRef(true);
  const [, redraw] = useState(0);
  const [view, setView] = useState({ top: 0, height: 800 });
  const again = useCallback(() => redraw((n) => n + 1), []);
  const total = Math.ceil(count / BLOCK);
  const size = (n) => heights.current.get(n) ?? Math.min(BLOCK, count - n * BLOCK) * GUESS;
  const offset = (n) => { let y = 0; for (let i = 0; i < n; i += 1) y += size(i); return y; };

  // Which blocks are near the window.
  const near = useMemo(() => {
    const found = [];
    let y = 0;
    for (let n = 0; n < total; n += 1) {
      const next = y + size(n);
      if (next > view.top - BEYOND && y < view.top + view.height + BEYOND) found.push(n);
      y = next;
    }
    return found;
  }, [view, total, count, version, heights.current.size]);
  const before = offset(near[0] ?? 0);
  const whole = offset(total);

  useEffect(() => { blocks.current.clear(); again(); }, [version]);
  useEffect(() => {
    for (const n of near) {
      const last = Math.min((n + 1) * BLOCK, count) - 1;
      const known = blocks.current.get(n);
      if (known && (known.busy || known.last >= last)) continue;
      blocks.current.set(n, { ...known, busy: true });
      load(n * BLOCK, last).then(
        (items) => { blocks.current.set(n, { items, last }); again(); },
        (error) => { blocks.current.set(n, { error, last }); again(); },
      );
    }
    for (const n of blocks.current.keys()) {
      if (blocks.current.size > KEPT && !near.includes(n)) blocks.current.delete(n);
    }
  }, [near, count, version]);

  // Measure what is laid out; what grew above the window must not push the reader down.
  useLayoutEffect(() => {
    const scrolled = box.current;
    let shift = 0;
    for (const n of near) {
      const node = nodes.current.get(n);
      if (!node || !blocks.current.get(n)?.items) continue;
      const real = node.offsetHeight;
      const old = size(n);
      if (Math.abs(real - old) > 0.5) {
        heights.current.set(n, real);
        if (offset(n) + Math.min(old, real) <= scrolled.scrollTop) shift += real - old;
      }
    }
    if (shift) { scrolled.scrollTop += shift; again(); }
    if (stuck.current && !target.current) scrolled.scrollTop = scrolled.scrollHeight;
  });

  const target = useRef(null);
  useEffect(() => {
    if (!seen || !(seen.seq >= 0 && seen.seq < count)) return undefined;
    target.current = seen.seq;
    stuck.current = false;
    const n = Math.floor(seen.seq / BLOCK);
    box.current.scrollTop = offset(n) + ((seen.seq % BLOCK) / BLOCK) * size(n) - 80;
    let tries = 0;
    const settle = () => {
      const node = box.current?.querySelector(`[data-seq="${seen.seq}"]`);
      if (node) {
        node.scrollIntoView({ block: 'center' });
        node.classList.add('found');
        setTimeout(() => node.classList.remove('found'), 2500);
        target.current = null;
      } else if (tries < 120) {
        tries += 1;
        timer = setTimeout(settle, 30);
      }
    };
    let timer = setTimeout(settle, 30);
    return () => clearTimeout(timer);
  }, [seen?.at, seen?.seq]);

  const scrolled = useCallback(() => {
    const { scrollTop: top, clientHeight: height, scrollHeight } = box.current;
    stuck.current = top + height > scrollHeight - 60;
    setView((old) => (Math.abs(old.top - top) > 200 || old.height !== height ? { top, height } : old));
  }, []);
  useEffect(() => {
    const look = new ResizeObserver(scrolled);
    look.observe(box.current);
    scrolled();
    return () => look.disconnect();
  }, []);

  return html`<div class="scroller" ref=${box} onScroll=${scrolled} tabindex="0" role="log" aria-label=${label}>
    <div style=${{ height: `${before}px` }} />
    ${near.map((n) => {
    const block = blocks.current.get(n);
    const ref = (node) => { if (node) nodes.current.set(n, node); else nodes.current.delete(n); };
    if (block?.error) return html`<p key=${n} class="trouble" role="alert">${block.error.message}</p>`;
    if (!block?.items) return html`<div key=${n} class="waiting" aria-hidden="true" style=${{ height: `${size(n)}px` }} />`;
    return html`<ol key=${n} ref=${ref} class="block" start=${n * BLOCK}>${block.items.map(item)}</ol>`;
  })}
    <div style=${{ height: `${Math.max(whole - before - near.reduce((y, n) => y + size(n), 0), 0)}px` }} />
    ${end}
  </div>`;
}
