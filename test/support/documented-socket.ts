import { readFileSync } from 'node:fs'
import { compileFunction } from 'node:vm'
import { WebSocket } from 'ws'
import type { JarBrowser } from './jar-browser.ts'

type Message = Record<string, unknown>

/** The function of docs/frontends.md for a connection that reconnects by itself. */
export type DocumentedSocket = (
  path: string,
  page: {
    subscribe: (send: (message: Message) => boolean) => void
    receive: (message: Message) => void
    ended: (code: number, reason: string) => void
  },
) => { send: (message: Message) => boolean; stop: () => void }

/**
 * The example of docs/frontends.md, unchanged, in the page of a browser.
 * @param onClose is called with the code of every connection that closes
 */
export function documentedSocket(
  browser: JarBrowser,
  pageUrl: string,
  onClose: (code: number) => void = () => undefined,
): DocumentedSocket {
  class PageSocket extends WebSocket {
    constructor(url: URL) {
      const cookie = browser.cookieHeader(new URL(pageUrl), undefined)
      super(url, { headers: { origin: pageUrl, cookie } })
      // Without a listener the error would be thrown. A page sees only the close.
      this.on('error', () => undefined).on('close', onClose)
    }
  }
  const build = compileFunction(`${example()}; return openLine`, ['WebSocket', 'location', 'fetch']) as (
    ...globals: unknown[]
  ) => DocumentedSocket
  return build(PageSocket, new URL(pageUrl), (path: string) => browser.fetch(path))
}

function example(): string {
  const text = readFileSync(new URL('../../docs/frontends.md', import.meta.url), 'utf8')
  const code = [...text.matchAll(/```js\n([\s\S]*?)```/g)].map(([, block = '']) => block)
  const found = code.find((block) => block.includes('function openLine'))
  if (found === undefined) throw new Error('docs/frontends.md has no openLine()')
  return found
}
