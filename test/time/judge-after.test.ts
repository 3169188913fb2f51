import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { test } from 'tap'
import { judgeAfter } from '../../src/time/judge-after.ts'
import { within } from '../../src/time/within.ts'
import { nodeWarnings } from '../support/telemetry/node-warnings.ts'
import { nextEvent } from '../support/time/until.ts'

/** Blocks this thread, and so its event loop. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

await test('after a standstill, what has arrived is read before a peer is judged', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [[peer]] = (await Promise.all([nextEvent(server, 'connection'), nextEvent(client, 'connect')])) as [
    [typeof client],
    unknown,
  ]
  const events: string[] = []
  peer.once('data', () => {
    events.push('read')
    end()
  })
  const end = judgeAfter(20, () => events.push('judged'))
  const waited = within(
    20,
    once(peer, 'data').then(() => 'answered'),
  )
  client.write('an answer')
  block(100)
  t.equal(await waited, 'answered')
  t.same(events, ['read'])
  client.destroy()
})

await test('a peer that has sent nothing is judged once, and not after the wait has ended', async (t) => {
  const judged: string[] = []
  const end = judgeAfter(1, () => judged.push('ended'))
  await new Promise<void>((resolve) => {
    judgeAfter(1, () => {
      judged.push('silent')
      resolve()
    })
    end()
    end()
  })
  t.same(judged, ['silent'])
})

await test('a peer whose time is over already is judged at once, without a warning of Node.js', async (t) => {
  const warnings = nodeWarnings(t)
  await new Promise<void>((resolve) => judgeAfter(-20, resolve))
  t.same(warnings, [])
})
