// A list of any length: only what is near the window is in the document.
//
// Items are loaded and laid out a block at a time. A block that has not been shown has a guessed height;
// once it is laid out it is measured. Whatever changes its height above the reader, the item at the
// top of the window stays where it is.

import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { html, Trouble } from './ui.js';

export const BLOCK = 20; // few enough to be drawn within a frame or two
const GUESS = 90; // pixels of an item that has not been shown
const TALLEST = 12_000_000; // pixels of all: browsers cannot lay out much more
const BEYOND = 900; // pixels laid out above and below the window
const KEPT = 60; // blocks kept loaded
const CALM = 80; // milliseconds without a leap before anything is loaded
const AWAY = 600; // pixels above the newest items from which a button leads back to them
const FLASH = 2500; // milliseconds that an item which was jumped to is marked

/** Where the blocks lie: `sizes` has the heights that are known. Pure. */
export function layout(count, sizes) {
  const total = Math.ceil(count / BLOCK);
  const guess = Math.min(GUESS, TALLEST / Math.max(count, 1));
  const size = (n) => sizes.get(n) ?? Math.min(BLOCK, count - n * BLOCK) * guess;
  const offset = (end) => { let y = 0; for (let n = 0; n < end; n += 1) y += size(n); return y; };
  /** The blocks between two heights, how high lies the first, and how much is behind the last. */
  const between = (top, bottom) => {
    const near = [];
    let [y, before, after] = [0, 0, 0];
    for (let n = 0; n < total; n += 1) {
      const next = y + size(n);
      if (next <= top) before = next; else if (y < bottom) near.push(n); else after += size(n);
      y = next;
    }
    return { near, before, after };
  };
  return { total, size, offset, between };
}

/** What is loaded, block by block; `told` is called when there is more. */
function useBlocks(count, load, told) {
  const blocks = useRef(new Map());
  const want = useCallback((near, total) => {
    for (const n of near) {
      const last = Math.min((n + 1) * BLOCK, total) - 1;
      const known = blocks.current.get(n);
      if (known && (known.busy || known.error || known.last >= last)) continue;
      blocks.current.set(n, { ...known, busy: true });
      load(n * BLOCK, last).then(
        (items) => { blocks.current.set(n, { items, last }); told(); },
        (error) => { blocks.current.set(n, { ...known, busy: false, error }); told(); },
      );
    }
    for (const [n, block] of blocks.current) {
      if (blocks.current.size > KEPT && !near.includes(n) && !block.busy) blocks.current.delete(n);
    }
  }, [load]);
  const forget = (n) => { blocks.current.delete(n); told(); };
  const shownTo = blocks.current.get(Math.ceil(count / BLOCK) - 1)?.last ?? -1;
  return { of: (n) => blocks.current.get(n), want, forget, shownTo };
}

/**
 * `count` items; `load(first, last)` gives some of them, `item(one, found, before)` draws one, with its
 * number in `data-seq`; `before` is the one above it, if it is loaded. `seen` = { seq, at } brings an item into the window. `end` is drawn behind the last
 * one; as long as the reader is at the bottom, or `follow`, the list stays there. `onShown(last)` is
 * told when the newest items are in the document.
 */
export function Scroller({ count, load, item, seen, end, follow, label, onShown }) {
  const box = useRef(null);
  const sizes = useRef(new Map());
  const nodes = useRef(new Map());
  const there = Boolean(seen && seen.seq >= 0 && seen.seq < count);
  const stuck = useRef(!there); // at the bottom
  const place = useRef({ top: 0, height: 800 }); // what the reader sees
  const drawn = useRef(place.current); // and what they saw when this was last drawn
  const anchor = useRef(null); // the item at the top of the window, and where it was
  const target = useRef(null); // the item to bring into the window
  const [, redraw] = useState(0);
  const [found, setFound] = useState(null);
  const [away, setAway] = useState(false);
  const again = useCallback(() => redraw((n) => n + 1), []);
  const blocks = useBlocks(count, load, again);
  const { total, size, offset, between } = layout(count, sizes.current);
  const { height } = place.current;
  const lowest = Math.max(offset(total) - height, 0);
  const top = stuck.current ? lowest : Math.min(place.current.top, lowest); // the newest lie at the bottom
  const { near, before, after } = between(top - BEYOND, top + height + BEYOND);

  const leap = useRef({ top, timer: 0 });
  useEffect(() => {
    const far = Math.abs(top - leap.current.top) > 3 * height && target.current === null;
    leap.current.top = top;
    drawn.current = place.current;
    clearTimeout(leap.current.timer);
    if (!far) blocks.want(near, count); else leap.current.timer = setTimeout(() => blocks.want(near, count), CALM);
  });
  useEffect(() => () => clearTimeout(leap.current.timer), []);

  /** Go to where the item should be, as far as heights are known; whether that is elsewhere. */
  const aimAt = (seq) => {
    const n = Math.floor(seq / BLOCK);
    const from = box.current.scrollTop;
    box.current.scrollTop = layout(count, sizes.current).offset(n) + ((seq % BLOCK) / BLOCK) * size(n) - height / 2;
    place.current = { ...place.current, top: box.current.scrollTop };
    return Math.abs(box.current.scrollTop - from) > 1;
  };

  const remember = () => {
    const frame = box.current.getBoundingClientRect();
    for (const n of near) {
      const node = nodes.current.get(n);
      if (!node || node.getBoundingClientRect().bottom <= frame.top) continue;
      for (const child of node.children) {
        const place = child.getBoundingClientRect();
        if (place.bottom > frame.top) { anchor.current = { seq: child.dataset.seq, y: place.top - frame.top, top: box.current.scrollTop }; return; }
      }
    }
    anchor.current = null;
  };

  useLayoutEffect(() => {
    let grown = false;
    for (const n of near) {
      const node = nodes.current.get(n);
      const real = node?.getBoundingClientRect().height;
      if (real && Math.abs(real - size(n)) > 0.5) { sizes.current.set(n, real); grown = true; }
    }
    const aim = target.current !== null && box.current.querySelector(`[data-seq="${target.current}"]`);
    if (aim) {
      const { top: y, height: high } = aim.getBoundingClientRect();
      box.current.scrollTop += y - box.current.getBoundingClientRect().top - Math.max((height - high) / 2, 12);
      setFound(target.current);
      target.current = null;
    } else if (target.current !== null) {
      if (aimAt(target.current)) again(); // blocks above it have got another height
    } else if (stuck.current) {
      box.current.scrollTop = box.current.scrollHeight;
    } else if (anchor.current) {
      const { seq, y, top: then } = anchor.current;
      const node = box.current.querySelector(`[data-seq="${seq}"]`);
      const now = node && node.getBoundingClientRect().top - box.current.getBoundingClientRect().top;
      const drift = node ? now - (y - (box.current.scrollTop - then)) : 0;
      if (Math.abs(drift) > 0.5) box.current.scrollTop += drift;
    }
    remember();
    if (grown) again();
    if (blocks.shownTo >= count - 1) onShown?.(count - 1);
  });

  useEffect(() => {
    if (!there) return;
    target.current = seen.seq;
    stuck.current = false;
    anchor.current = null;
    aimAt(seen.seq);
    again();
  }, [seen?.at, seen?.seq, there]);
  useEffect(() => {
    if (found === null) return undefined;
    const timer = setTimeout(() => setFound(null), FLASH);
    return () => clearTimeout(timer);
  }, [found, seen?.at]);
  useEffect(() => { if (follow) { stuck.current = true; target.current = null; again(); } }, [follow]);

  const scrolled = useCallback(() => {
    if (!box.current?.clientHeight) return; // it is not shown
    const { scrollTop, clientHeight, scrollHeight } = box.current;
    const moved = Math.abs(drawn.current.top - scrollTop) > 200 || drawn.current.height !== clientHeight;
    place.current = { top: scrollTop, height: clientHeight };
    if (target.current === null) stuck.current = scrollTop + clientHeight > scrollHeight - 60;
    setAway(scrollTop + clientHeight < scrollHeight - AWAY);
    if (anchor.current) {
      anchor.current.y -= scrollTop - anchor.current.top;
      anchor.current.top = scrollTop;
    }
    if (moved) again();
  }, []);
  useEffect(() => {
    const look = new ResizeObserver(() => {
      const bottom = stuck.current;
      scrolled();
      if (bottom) { stuck.current = true; again(); }
    });
    look.observe(box.current);
    scrolled();
    return () => look.disconnect();
  }, []);

  const toNewest = () => { stuck.current = true; target.current = null; again(); box.current.focus(); };
  const newest = blocks.of(total - 1);
  const failed = newest?.error && newest.items ? newest : null;
  return html`<div class="frame"><div class="scroller" ref=${box} onScroll=${scrolled} tabindex="0" role="log" aria-live="off" aria-label=${label}>
    <div style=${{ height: `${before}px` }} />
    ${near.map((n) => {
    const block = blocks.of(n);
    const ref = (node) => { if (node) nodes.current.set(n, node); else nodes.current.delete(n); };
    if (block?.error && !block.items) return html`<div key=${`e${n}`} style=${{ minHeight: `${size(n)}px` }}><${Trouble} error=${block.error} again=${() => blocks.forget(n)} /></div>`;
    if (!block?.items) return html`<div key=${`w${n}`} class="waiting" aria-hidden="true" style=${{ height: `${size(n)}px` }} />`;
    return html`<ol key=${n} ref=${ref} class="block" start=${n * BLOCK}>${block.items.map((one, i) => item(one, one.seq === found, i ? block.items[i - 1] : blocks.of(n - 1)?.items?.at(-1)))}</ol>`;
  })}
    <div style=${{ height: `${after}px` }} />
    ${failed && html`<${Trouble} error=${failed.error} again=${() => blocks.forget(total - 1)} />`}
    ${end}
  </div>
  ${away && html`<button type="button" class="newest-one" onClick=${toNewest}>Newest <span aria-hidden="true">↓</span></button>`}</div>`;
}
