import { WebSocket, WebSocketServer } from 'ws'

/**
 * The least a relay on ws can do, and the measure of ours: no checks, no limits, no heartbeat; each message is sent on.
 * `PORT=… WS_URL=… node ws-relay.ts`
 */

const environment = process.env
const options = { perMessageDeflate: false }
const server = new WebSocketServer({ ...options, port: Number(environment['PORT']), host: '127.0.0.1' })

server.on('connection', (browser) => {
  const upstream = new WebSocket(`${environment['WS_URL']}/trading/v1/options/ws/public`, options)
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
})
