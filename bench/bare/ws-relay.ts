import { Pool } from 'undici'
import { WebSocket, WebSocketServer } from 'ws'

/**
 * A minimal relay on ws for comparison: it forwards each message and has no checks, limits or heartbeat. With API_URL it gets
 * a one-time URL for each browser, with a fixed bearer token. `PORT=… WS_URL=… [API_URL=…] node ws-relay.ts`
 */

const environment = process.env
const options = { perMessageDeflate: false }
const server = new WebSocketServer({ ...options, port: Number(environment['PORT']), host: '127.0.0.1' })
const wsUrl = environment['WS_URL']
const apiUrl = environment['API_URL'] ?? ''
const pool = apiUrl === '' ? undefined : new Pool(apiUrl, { connections: 512 })

server.on('connection', (browser, request) => {
  if (pool === undefined) {
    join(browser, `${wsUrl}/trading/v1/options/ws/public`)
  } else {
    oneTimeUrl(pool, request.url?.split('/').at(-1)).then(
      (url) => join(browser, url),
      () => browser.terminate(),
    )
  }
})

async function oneTimeUrl(api: Pool, accountId = ''): Promise<string> {
  const { body } = await api.request({
    method: 'POST',
    path: `/trading/v1/options/accounts/${accountId}/otp`,
    headers: { accept: 'application/json', authorization: `Bearer ${'x'.repeat(43)}` },
  })
  const { data } = (await body.json()) as { data: { url: string } }
  return data.url
}

function join(browser: WebSocket, url: string): void {
  const upstream = new WebSocket(url, options)
  upstream.on('message', (data, binary) => browser.send(data, { binary }))
  upstream.on('close', () => browser.terminate())
  upstream.on('error', () => browser.terminate())
  const early: { data: WebSocket.RawData; binary: boolean }[] = []
  browser.on('message', (data, binary) => {
    if (upstream.readyState === WebSocket.OPEN) upstream.send(data, { binary })
    else early.push({ data, binary })
  })
  upstream.once('open', () => {
    for (const { data, binary } of early) upstream.send(data, { binary })
  })
  browser.on('close', () => upstream.terminate())
  browser.on('error', () => upstream.terminate())
}
