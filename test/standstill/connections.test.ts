import { test, type Test } from 'tap'
import { LastingConnection } from '../../src/store/links/lasting-connection.ts'
import { testRedis } from '../support/server/test-server.ts'
import { until } from '../support/time/until.ts'

/** A connection to a Redis of its own, and the reasons why it was lost. */
async function connected(t: Test) {
  const redis = await testRedis(t)
  const lost: string[] = []
  const connection = new LastingConnection({
    find: async () => ({ name: 'master', options: { url: redis.url }, owns: () => true }),
    lost: (reason) => void lost.push(reason),
  })
  t.teardown(() => connection.close())
  await connection.next()
  return { redis, lost, connection }
}

await test('a connection whose server has replied while this process stood still is kept, although its time is over', async (t) => {
  const { lost, connection } = await connected(t)
  const asked = connection.ask()
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3500)
  await asked
  t.same([lost, connection.isUp], [[], true])
})

await test('a connection whose server does not reply is given up, and opened again once the server goes on', async (t) => {
  const { redis, lost, connection } = await connected(t)
  redis.process.kill('SIGSTOP')
  t.teardown(() => redis.process.kill('SIGCONT'))
  await until(() => lost.length > 0, 'the silence is noticed', 6000)
  t.same([lost, connection.isUp], [['silence'], false])
  t.throws(() => connection.present, /no connection/)
  redis.process.kill('SIGCONT')
  await until(() => connection.isUp, 'the connection is open again')
})
