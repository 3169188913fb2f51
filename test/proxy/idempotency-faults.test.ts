import { Readable } from 'node:stream'
import { test } from 'tap'
import { JoinedPieces } from '../../src/upstream/request-body.ts'
import { answers, keyedCalls } from '../support/idempotency/keyed-call.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { replace } from '../support/time/replace.ts'

await test('a call that fails unexpectedly once it is sent is not sent again', async (t) => {
  const { world, call, sent, outcomes } = await keyedCalls()
  world.upstream = () => {
    throw new TypeError('planted')
  }
  t.match(await call('key'), { message: 'planted' })
  world.upstream = answers(200, 'done')
  t.equal((await call('key'))?.code, 'outcome_unknown')
  t.equal(sent.length, 1)
  t.same(outcomes, ['unknown', 'repeated_unknown'])
})

await test('a call that fails unexpectedly before its end is recorded leaves no lease that is renewed for ever', async (t) => {
  const renewals = new HeldTimers(t, 'setInterval', 5000)
  const { world, call, deps } = await keyedCalls()
  world.upstream = answers(200, 'done')
  replace(t, deps.metrics.upstreamRequests, 'count', () => {
    throw new TypeError('planted')
  })
  t.match(await call('key'), { message: 'planted' })
  t.equal(renewals.size, 0)
})

await test('a fault of this server while a body arrives is not taken for a browser that has left', async (t) => {
  const { call, sent, lines } = await keyedCalls()
  replace(t, JoinedPieces.prototype, 'add', () => {
    throw new RangeError('planted')
  })
  t.match(await call('key', null, Readable.from([Buffer.from('a '), Buffer.from('body')])), { message: 'planted' })
  t.same([sent, lines], [[], []])
})
