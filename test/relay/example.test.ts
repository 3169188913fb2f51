import { readFile } from 'node:fs/promises'
import { compileFunction } from 'node:vm'
import { test } from 'tap'
import { WebSocket } from 'ws'
import { logOut, relayWorld, TRADING, until } from '../support/relay-world.ts'

type Message = Record<string, unknown>
type OpenLine = (
  path: string,
  page: {
    subscribe: (send: (message: Message) => boolean) => void
    receive: (message: Message) => void
    ended: (code: number, reason: string) => void
  },
) => { send: (message: Message) => boolean; stop: () => void }

/** The example of the documentation, as it stands there. */
async function example(): Promise<string> {
  const text = await readFile(new URL('../../docs/frontends.md', import.meta.url), 'utf8')
  const code = [...text.matchAll(/```js\n([\s\S]*?)```/g)].map(([, block = '']) => block)
  const found = code.find((block) => block.includes('function openLine'))
  if (found === undefined) throw new Error('docs/frontends.md has no openLine()')
  return found
}

await test('the example of the documentation comes back, subscribes again, and buys once', async (t) => {
  const world = await relayWorld(t)
  const { browser, server, upstream } = world
  class PageSocket extends WebSocket {
    constructor(url: URL) {
      const cookie = browser.cookieHeader(new URL(server.url), undefined)
      super(url, { headers: { origin: server.url, cookie } })
    }
  }
  const asked: Message[] = []
  upstream.onSocket = (socket) => {
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as Message
      asked.push(message)
      if ('ticks' in message) socket.send('{"tick":1}')
      if ('buy' in message) socket.terminate()
    })
  }
  const random = Math.random
  t.teardown(() => (Math.random = random))
  Math.random = () => 0.01
  const build = compileFunction(`${await example()}; return openLine`, [
    'WebSocket',
    'location',
    'fetch',
  ]) as (...globals: unknown[]) => OpenLine
  const openLine = build(PageSocket, new URL(server.url), (path: string) => browser.fetch(path))
  let ticks = 0
  let end: unknown
  const line = openLine(TRADING, {
    subscribe: (send) => void send({ ticks: 'R_100', subscribe: 1 }),
    receive: () => ticks++,
    ended: (code, reason) => (end = { code, reason }),
  })
  t.equal(line.send({ buy: 'too early' }), false)
  await until(() => ticks === 1)
  t.equal(line.send({ buy: 'abc' }), true)
  await until(() => ticks === 2)
  t.equal(asked.filter((message) => 'buy' in message).length, 1, 'a buy without an answer is not sent again')
  t.equal(asked.filter((message) => 'ticks' in message).length, 2)

  await logOut(browser)
  await until(() => end !== undefined)
  t.same(end, { code: 4401, reason: 'session_expired' })
  line.stop()
  await world.quiet()
})
