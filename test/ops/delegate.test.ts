import { test } from 'tap'
import { delegate, DELEGATION_MS } from '../../src/ops/delegate.ts'
import type { OperatorCommand, OperatorOutcome } from '../../src/ops/operator-commands.ts'

const ORDER = { is: 'end', subject: 'CR1', requester: { reqId: 'request', client: '127.0.0.1' } } as const

/** Workers by what they reply; undefined: they hang. The time is that which their timeouts have taken. */
function workersOf(replies: readonly (OperatorOutcome | undefined)[]) {
  let time = 0
  const asked: OperatorOutcome[] = []
  const channel = {
    isResponsive: async () => true,
    runCommand: async (reply: OperatorOutcome | undefined, _order: unknown, timeoutMs: number) => {
      asked.push(reply ?? { is: 'noWorker' })
      if (reply === undefined) time += timeoutMs
      return reply
    },
  }
  const run = () => delegate(replies, ORDER, channel, () => time)
  return { run, asked, elapsedMs: () => time }
}

await test('an order of an operator waits no longer for twenty workers that hang than for two', async (t) => {
  const { run, asked, elapsedMs } = workersOf(Array.from({ length: 20 }, () => undefined))
  t.same(await run(), { is: 'noWorker' })
  t.equal(elapsedMs(), DELEGATION_MS)
  t.equal(asked.length, 2)
})

await test('an order of an operator goes on to the next worker when one hangs or cannot reach the store', async (t) => {
  const { run, asked } = workersOf([{ is: 'storeDown' }, undefined, { is: 'ended', count: 2 }, { is: 'failed' }])
  t.same(await run(), { is: 'ended', count: 2 })
  t.equal(asked.length, 3, 'one success is enough')
  t.same(await workersOf([{ is: 'storeDown' }, undefined]).run(), { is: 'storeDown' })
  t.same(await workersOf([]).run(), { is: 'noWorker' })
  const shown = { is: 'shown', instance: 'host/1/a', version: 0, controls: [], reports: [] } as const
  t.same(await workersOf([{ ...shown, reports: undefined }, shown]).run(), shown, 'a worker that is still starting')
})

await test('a change that only one worker has made goes on to all others, and none of them notes it again', async (t) => {
  const orders: OperatorCommand[] = []
  const change = {
    is: 'change',
    change: { control: 'notice', value: null },
    requester: ORDER.requester,
    askedAt: 7,
  } as const
  const here = { is: 'changed', version: 1, isShared: false } as const
  const outcome = await delegate([undefined, here, undefined, here], change, {
    isResponsive: async () => true,
    async runCommand(reply, order) {
      orders.push(order)
      return reply
    },
  })
  t.same(outcome, here)
  t.same(orders, [change, change, { ...change, isNoted: true }, { ...change, isNoted: true }])
})

await test('an order of an operator goes to no worker that does not say how it is', async (t) => {
  const asked: string[] = []
  const outcome = await delegate(['hangs', 'works'], ORDER, {
    isResponsive: async (worker) => worker === 'works',
    runCommand: async (worker) => {
      asked.push(worker)
      return { is: 'ended', count: 1 }
    },
  })
  t.same(outcome, { is: 'ended', count: 1 })
  t.same(asked, ['works'])
})
