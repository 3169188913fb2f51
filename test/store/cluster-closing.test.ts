import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { RedisStore } from '../../src/store/redis-store.ts'
import { QUIET } from '../support/redis/connected-store.ts'
import { until } from '../support/time/until.ts'

await test('A store that is closed while its client asks for the masters of the Cluster leaves no connection behind', async (t) => {
  const open = new Set<Socket>()
  let accepted = 0
  const answers: (() => void)[] = []
  // A Cluster of one master, which lets a client wait for its answer to CLUSTER SLOTS.
  const server = createServer((socket) => {
    accepted++
    open.add(socket)
    socket.on('close', () => open.delete(socket)).on('error', () => undefined)
    socket.on('data', (data) => {
      for (const [, name = ''] of data.toString().matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g)) {
        const slots = `*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$9\r\n127.0.0.1\r\n:${port}\r\n$1\r\na\r\n`
        if (name === 'CLUSTER') answers.push(() => void socket.write(slots))
        else socket.write(name === 'HELLO' ? '%1\r\n$5\r\nproto\r\n:3\r\n' : '+OK\r\n')
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const url = `redis://127.0.0.1:${port}`
  const store = RedisStore.connect(new Changeable(`${url},${url}`), QUIET)
  await until(() => answers.length === 1, 'the client asks for the masters')
  await store.close()
  for (const answer of answers) answer()
  await until(() => accepted === 2, 'the client connects to the master')
  await until(() => open.size === 0, 'no connection stays')
})
