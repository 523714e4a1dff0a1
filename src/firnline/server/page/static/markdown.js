// Markdown as safe HTML: no raw HTML, no scripts, no pictures from elsewhere, links marked as such.

import { Marked } from 'marked';
import DOMPurify from 'dompurify';

const escape = (text) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
const ENTITY = /[<>"']|&(?!(#\d{1,7}|#x[\da-f]{1,6}|\w+);)/gi; // what is an entity already stays one
const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text }) => escape(text), // typed HTML is shown, not rendered
    text(token) { // behind <script> or <pre>, marked would take text for markup
      return token.tokens ? this.parser.parseInline(token.tokens) : token.text.replace(ENTITY, escape);
    },
    checkbox: ({ checked }) => (checked ? '☑ ' : '☐ '),
    image: ({ href, text }) => `<span class="picture">[picture: ${escape(text || href || '')}]</span>`,
  },
});

const TAGS = ['a', 'b', 'blockquote', 'br', 'code', 'del', 'em', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'i', 'li', 'ol', 'p', 'pre', 'span', 'strong', 'table', 'tbody', 'td', 'th', 'thead', 'tr', 'ul'];
const ATTRIBUTES = ['href', 'title', 'align', 'start', 'class', 'rel', 'target'];

DOMPurify.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName === 'A') {
    if (!/^(https?:|mailto:|#)/i.test(node.getAttribute('href') || '')) node.removeAttribute('href');
    node.setAttribute('rel', 'noopener noreferrer nofollow');
    node.setAttribute('target', '_blank');
  }
  if (node.tagName === 'TABLE') node.setAttribute('tabindex', '0'); // a wide one is scrolled, with keys as well
});

export const LONGEST = 60_000; // characters that are drawn as markdown

const KEPT = 500; // cached texts, for scrolling back
const known = new Map();

function made(text) {
  const source = text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text;
  return DOMPurify.sanitize(marked.parse(source), {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    RETURN_TRUSTED_TYPE: true,
  });
}

/** The text as HTML that may be put into the page. */
export function markdown(text) {
  const found = known.get(text) ?? made(text);
  known.delete(text);
  known.set(text, found);
  if (known.size > KEPT) known.delete(known.keys().next().value);
  return found;
}
