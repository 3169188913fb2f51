import { WebSocket } from 'ws'
import { createClient, type ServerOptions } from '../../../client/dist/client.js'
import type { CrowdInit, PageChange } from './page-crowd.ts'

/** Opens a page's trading socket, and reports its changes to the parent process. */
function openPage(pageUrl: string, cookie: string): void {
  class PageSocket extends WebSocket {
    constructor(url: string) {
      super(url, { headers: { origin: pageUrl, cookie }, perMessageDeflate: false })
      this.on('error', () => undefined)
    }
  }
  const client = createClient({
    baseUrl: pageUrl,
    fetch: (url, init) => fetch(url, { ...init, headers: { cookie } }),
    WebSocket: PageSocket as unknown as NonNullable<ServerOptions['WebSocket']>,
  })
  const socket = client.tradingSocket('VRTC100')
  let last = ''
  socket.onStatus(() => {
    const { state, code, reason } = socket.status()
    if (state === last) return
    last = state
    const change: PageChange = {
      page: cookie,
      state,
      at: Date.now(),
      ...(code !== undefined && { code }),
      ...(reason !== undefined && { reason }),
    }
    process.send?.(change)
  })
}

process.once('message', ({ pageUrl, cookies }: CrowdInit) => {
  for (const cookie of cookies) openPage(pageUrl, cookie)
})
process.once('disconnect', () => process.exit())
