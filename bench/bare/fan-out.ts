import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { acceptSockets, frameOf, FrameReader, TEXT } from '../load/web-socket.ts'

/**
 * The least that sharing can cost in Node, for comparison: the bytes of one upstream socket are written to every browser as they
 * come. All browsers must ask for the same in the same words. Nothing is parsed, checked, limited or counted.
 * `PORT=… WS_URL=… node fan-out.ts`
 */

const environment = process.env
const { hostname, port, host } = new URL(environment['WS_URL'] ?? '')
const browsers = new Set<Duplex>()
/** The first answer to each request, by its text. */
const answers = new Map<string, Promise<Buffer>>()
let last: Promise<unknown> = Promise.resolve()
let onAnswer: ((answer: Buffer) => void) | undefined

const upstream = connect(Number(port), hostname)
const key = randomBytes(16).toString('base64')
const headers = [`Host: ${host}`, 'Connection: Upgrade', 'Upgrade: websocket', `Sec-WebSocket-Key: ${key}`]
upstream.write(`GET / HTTP/1.1\r\n${headers.join('\r\n')}\r\nSec-WebSocket-Version: 13\r\n\r\n`)
upstream.once('data', () => {
  upstream.on('data', (bytes: Buffer) => {
    const receive = onAnswer
    onAnswer = undefined
    if (receive !== undefined) receive(bytes)
    else for (const browser of browsers) browser.write(bytes)
  })
})

await acceptSockets((socket) => {
  const reader = new FrameReader(true, (opcode, payload) => {
    if (opcode === TEXT) void answerTo(payload.toString()).then((answer) => socket.write(answer))
  })
  browsers.add(socket)
  socket.on('data', (chunk: Buffer) => reader.read(chunk))
  socket.on('close', () => browsers.delete(socket))
}, Number(environment['PORT']))

/** Asks upstream, one request after the other, unless it has been asked before. */
function answerTo(text: string): Promise<Buffer> {
  const known = answers.get(text)
  if (known !== undefined) return known
  const answer = last.then(() => {
    upstream.write(frameOf(text, true))
    return new Promise<Buffer>((resolve) => (onAnswer = resolve))
  })
  last = answer
  answers.set(text, answer)
  return answer
}
