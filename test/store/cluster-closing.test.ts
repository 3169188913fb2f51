import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { RedisStore } from '../../src/store/redis-store.ts'
import { QUIET } from '../support/redis/connected-store.ts'
import { until } from '../support/time/until.ts'

/** A Cluster of two masters, which keeps each client waiting for its answers to CLUSTER SLOTS. */
async function twoMasters(t: Test) {
  const open = new Set<Socket>()
  const answers: (() => void)[] = []
  const serve = (socket: Socket): void => {
    open.add(socket)
    socket.on('close', () => open.delete(socket)).on('error', () => undefined)
    socket.on('data', (data) => {
      for (const [, name = ''] of data.toString().matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g)) {
        if (name === 'CLUSTER') answers.push(() => void socket.write(slots))
        else socket.write(name === 'HELLO' ? '%1\r\n$5\r\nproto\r\n:3\r\n' : '+OK\r\n')
      }
    })
  }
  const servers = [createServer(serve), createServer(serve)]
  for (const server of servers) await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    for (const socket of open) socket.destroy()
    for (const server of servers) server.close()
  })
  const ports = servers.map((server) => (server.address() as AddressInfo).port)
  const [first, second] = ports.map((port) => `*3\r\n$9\r\n127.0.0.1\r\n:${port}\r\n$1\r\na\r\n`)
  const slots = `*2\r\n*3\r\n:0\r\n:8191\r\n${first}*3\r\n:8192\r\n:16383\r\n${second}`
  const url = `redis+cluster://127.0.0.1:${ports[0]}`
  return { open, answers, connect: (): RedisStore => RedisStore.connect(new Changeable(url), QUIET) }
}

/** One that was left behind would be open until it has been silent for four seconds, or for ever. */
async function noneStays(open: ReadonlySet<Socket>): Promise<void> {
  await until(() => open.size === 0, 'no connection stays', 3000)
}

await test('A store that is closed while it asks a node of REDIS_URL for the masters of the Cluster leaves no connection behind', async (t) => {
  const { open, answers, connect } = await twoMasters(t)
  const store = connect()
  await until(() => answers.length === 1, 'the store asks for the masters')
  await store.close()
  answers[0]?.()
  await noneStays(open)
})

await test('A store that is closed while it asks a master of the Cluster who owns which slots leaves no connection behind', async (t) => {
  const { open, answers, connect } = await twoMasters(t)
  const store = connect()
  await until(() => answers.length === 1, 'the store asks for the masters')
  answers[0]?.()
  await until(() => answers.length === 2, 'the store asks a master')
  await store.close()
  answers[1]?.()
  await noneStays(open)
})

await test('A store that is closed while it connects to the masters of the Cluster leaves no connection behind', async (t) => {
  const { open, answers, connect } = await twoMasters(t)
  for (let turns = 0; turns < 40; turns++) {
    const store = connect()
    const before = answers.length
    await until(() => answers.length > before, 'the store asks for the masters')
    answers[before]?.()
    // In one of these turns TCP connects.
    for (let passed = 0; passed < turns; passed++) await turn()
    await store.close()
  }
  await noneStays(open)
})
