import { connect, type AddressInfo } from 'node:net'
import { pino } from 'pino'
import { Registry } from 'prom-client'
import { test, type Test } from 'tap'
import { createOpsListener, type OpsSource } from '../../src/ops/ops-listener.ts'
import { nextEvent, until } from '../support/time/until.ts'

const request = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`

/** An ops listener without a server, and a connection to it. */
async function connected(t: Test, changes: Partial<OpsSource> = {}) {
  const registry = new Registry()
  const source = { reasons: () => [], warnings: () => [], registry: () => registry, ...changes }
  const ops = createOpsListener(() => source, { token: undefined, log: pino({ enabled: false }) })
  await ops.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => ops.close())
  const socket = connect((ops.server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined)
  t.teardown(() => socket.destroy())
  return { ops, socket }
}

await test('a connection to the ops listener that asks for more than it waits for is closed, so that it cannot fill the memory', async (t) => {
  let asked = 0
  const never = new Promise<Registry>(() => undefined)
  const { socket } = await connected(t, { registry: () => (asked++, never) })
  socket.write(request('/metrics').repeat(1000))
  await nextEvent(socket, 'close')
  t.equal(asked, 16)
})

await test('a few requests at once get their responses from the ops listener, and so do many one after the other', async (t) => {
  const { socket } = await connected(t)
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  for (let round = 1; round <= 10; round++) {
    socket.write(request('/livez').repeat(8))
    await until(() => text.split('HTTP/1.1 200').length > 8 * round, 'eight responses')
  }
  t.notOk(socket.destroyed)
})

await test('a body that never ends holds a connection to the ops listener for a minute', async (t) => {
  const { ops } = await connected(t)
  t.equal(ops.server.requestTimeout, 60_000)
})
