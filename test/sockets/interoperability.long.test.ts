import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { PUBLIC } from '../support/user.ts'
import { startWorld } from '../support/world.ts'

const PEER = fileURLToPath(new URL('../support/sockets/websocket_peer.py', import.meta.url))
/** Debian's Python, which python3-websockets is installed for. */
const PYTHON = '/usr/bin/python3'

type Outcome = { sent: string; received: string; code: number; reason: string }

/** Starts a peer and reads its output line by line. @throws Error with its output when the peer exits, e.g. without websockets */
function peer(t: Test, ...args: (string | number)[]): { line: () => Promise<string> } {
  const child = spawn(PYTHON, [PEER, ...args.map(String)], { stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const failed = once(child, 'error').then(([error]: unknown[]): never => {
    throw new Error(`${PYTHON} with python3-websockets is needed: ${String(error)}`)
  })
  failed.catch(() => undefined)
  const line = async (): Promise<string> => {
    const next = await Promise.race([lines.next(), failed])
    if (next.done !== true) return next.value
    throw new Error(`apt-get install python3-websockets? The peer ended: ${errors.slice(-500)}`)
  }
  return { line }
}

/** SEED=… repeats a failed run: the seed is in the message of every assertion. */
await test('clients and servers of another WebSocket library exchange messages through the relay', async (t) => {
  const seed = Number(process.env['SEED'] ?? randomInt(1_000_000))
  const upstream = peer(t, 'upstream', seed, 400)
  const port = await upstream.line()
  const { server, quiet } = await startWorld(t, {
    upstream: 'scripted',
    settings: { WS_URL: `ws://127.0.0.1:${port}`, SLOW_CONSUMER_SECONDS: '120' },
  })
  const browser = peer(t, 'browser', seed + 1, 1200, `ws://127.0.0.1:${server.port}${PUBLIC}`, server.url)
  const [atBrowser, atUpstream] = (await Promise.all([browser.line(), upstream.line()])).map(
    (line) => JSON.parse(line) as Outcome,
  )
  t.match(atUpstream?.received, /^1200 /, `upstream receives 1200 messages, SEED=${seed}`)
  t.equal(atUpstream?.received, atBrowser?.sent, `upstream receives the messages unchanged and in order, SEED=${seed}`)
  t.match(atBrowser?.received, /^400 /, `the browser receives 400 messages, SEED=${seed}`)
  t.equal(
    atBrowser?.received,
    atUpstream?.sent,
    `the browser receives the messages unchanged and in order, SEED=${seed}`,
  )
  t.match(atUpstream, { code: 4321, reason: 'done €' })
  t.match(atBrowser, { code: 4321 })
  await quiet()
})
