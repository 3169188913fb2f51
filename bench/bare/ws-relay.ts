import { WebSocket, WebSocketServer } from 'ws'

/**
 * A minimal relay on ws for comparison: it forwards each message and has no checks, limits or heartbeat.
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
