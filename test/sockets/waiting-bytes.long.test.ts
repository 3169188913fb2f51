import { test } from 'tap'
import type { WebSocket } from 'ws'
import { sizedServer } from '../support/server/sized-server.ts'
import { until } from '../support/time/until.ts'
import { PUBLIC } from '../support/user.ts'

const MIB = 1_048_576
/** As many as filled a container of 1 GiB, at MAX_BUFFERED_BYTES each. */
const SOCKETS = 1270
/** The memory of V8 where a container has 1 GiB, on which the size of its garbage depends. */
const V8 = ['--max-old-space-size=512']
const MESSAGE = Buffer.alloc(65_520, 'x')

/** Sends one message after the other for as long as the socket is open. */
function flood(socket: WebSocket): void {
  if (socket.readyState === socket.OPEN) socket.send(MESSAGE, () => flood(socket))
}

await test('1,270 browsers that read nothing do not fill 1 GiB, and are all cut off in the end', async (t) => {
  const settings = { MAX_WAITING_BYTES: String(256 * MIB), LOG_LEVEL: 'warn' }
  const { upstream, open, peakBytes } = await sizedServer(t, settings, V8)
  const clients = await open(PUBLIC, Array<string>(SOCKETS).fill(''))
  for (const { socket } of clients) socket.pause()
  for (let count = 0; count < SOCKETS; count++) flood(await upstream.socket())
  // SLOW_CONSUMER_SECONDS ends those that have not lost before.
  await until(() => upstream.open === 0, 'every socket has ended', 120_000)
  t.ok(peakBytes() < 1024 * MIB, `${Math.round(peakBytes() / MIB)} MiB at most`)
})
