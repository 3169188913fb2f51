import { createHash } from 'node:crypto'
import type { FastifyReply } from 'fastify'

/** Markup that needs no more escaping. Only this module creates it. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const STYLE = `
:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 4rem auto; padding: 0 1.5rem }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 1rem }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.5rem; margin: 2rem 0 0; font-size: .875rem }
dt { opacity: .7 }
dd { margin: 0; overflow-wrap: anywhere }
dd p { margin: .125rem 0 .5rem }
strong { color: light-dark(#c02c33, #ff8f8a) }
strong.right { color: light-dark(#0b7a4b, #4fd39a) }
code + strong { margin-left: .5rem }
ul { padding-left: 1.25rem }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere }
`

/** A template tag. It escapes strings, inserts markup as it is, and joins lists of markup. */
export function html(parts: TemplateStringsArray, ...values: readonly (string | Html | readonly Html[])[]): Html {
  return new Html(parts.map((part, index) => part + render(values[index] ?? '')).join(''))
}

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64')
/** The headers of a page. They allow no script, no style but the page's own, and no framing. */
export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; frame-ancestors 'none'`,
} as const

/** Makes a small self-contained page. */
export function page(title: string, content: Html): Html {
  return html`<!doctype html>
    <html lang="en">
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width" />
      <title>${title}</title>
      ${new Html(`<style>${STYLE}</style>`)}
      <main>
        <h1>${title}</h1>
        ${content}
      </main>
    </html> `
}

/** Sets the headers for a page on the reply, and returns the text to send. */
export function renderPage(reply: FastifyReply, { text }: Html): string {
  reply.headers(PAGE_HEADERS)
  return text
}

/** Whether an Accept header (RFC 9110 §12.5.1) asks for a page, as that of every navigation does. */
export function wantsPage(accept: string | undefined): boolean {
  return /text\/html/i.test(accept ?? '')
}

function render(value: string | Html | readonly Html[]): string {
  if (typeof value === 'string') return value.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
  return value instanceof Html ? value.text : value.map((item) => item.text).join('')
}
