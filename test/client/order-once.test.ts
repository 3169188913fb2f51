import { test } from 'tap'
import { makeOnce, type OnceOptions } from '../../client/src/core/api/order.ts'
import { ApiError, SocketError } from '../../client/src/core/base/errors.ts'
import { orderOnce } from '../../client/src/orders/once.ts'
import { failure } from '../support/client/page-client.ts'
import { CALL, NOW, rememberingPage, sessionOf } from '../support/client/remembering-core.ts'
import { searchedAccount, turns } from '../support/client/searched-account.ts'
import { CONTRACT } from '../support/client/sent-order.ts'
import { replace } from '../support/time/replace.ts'

type ChooseKey = Parameters<typeof makeOnce>[2]

/** A lock that takes a while. */
const request = async (_name: string, _options: object, act: () => unknown): Promise<unknown> => {
  await new Promise(setImmediate)
  return act()
}

const answer = () => Promise.resolve('answer')
const yes = () => true
const UNKNOWN = new ApiError('POST', '/orders')
const problem = (code: string, outcome?: 'unknown') =>
  new ApiError('POST', '/orders', new Response(null, { status: 409 }), {
    ...{ code, title: '', detail: '', type: '', status: 409, request_id: '' },
    ...(outcome && { outcome }),
  })

/** Makes an order that is kept, which ends like this. */
function keptOrder(page: ReturnType<typeof rememberingPage>, end: () => Promise<string>, options: OnceOptions = {}) {
  const make = (async (order: (key: string) => Promise<string>, isMade: unknown, choose: ChooseKey) => {
    page.world.log.push(await choose?.(page.core, CALL, 'fresh'))
    return order(String(isMade))
  }) as typeof makeOnce
  return orderOnce(make, end, { ...options, remember: 'order' })
}

await test('an order that is not kept is made by the core, with the isMade of the page, or the one that looks for a buy', async (t) => {
  const made: unknown[][] = []
  const make = ((...args: unknown[]) => {
    made.push(args)
    return Promise.resolve('answer')
  }) as typeof makeOnce
  t.equal(await orderOnce(make, answer, { isMade: yes }), 'answer')
  t.same(made, [[answer, yes]])
  await orderOnce(make, answer, {})
  const [, look] = made[1] as [unknown, NonNullable<OnceOptions['isMade']>]
  t.equal(await look(UNKNOWN), false, 'the server tells what became of a call with a key')
  for (const more of [{}, { order: undefined }]) {
    t.equal(await look(new SocketError('timeout', '', more)), false, 'it is no buy')
  }
})

await test('a buy is made if its contract is found, and not if it is not seen', async (t) => {
  let look: OnceOptions['isMade']
  const make = ((_: unknown, isMade: OnceOptions['isMade']) => {
    look = isMade
    return Promise.resolve()
  }) as typeof makeOnce
  await orderOnce(make, () => Promise.resolve(), {})
  for (const isSeen of [true, false]) {
    const world = searchedAccount(t)
    const lost = new SocketError('connection_lost', '', { outcome: 'unknown', order: world.order })
    const isMade = look?.(lost)
    await turns()
    await world.reads(isSeen ? [CONTRACT] : [])
    if (!isSeen) {
      await world.wait()
      await world.answer('statement', { statement: { transactions: [] } })
    }
    t.equal(await isMade, isSeen)
  }
})

await test('the refusal of a buy that was found is its error, and no other refusal, and none that the isMade of the page has met', async (t) => {
  const refusal = new SocketError('PriceMoved', '', { reply: { msg_type: 'buy' } })
  const read = new SocketError('RateLimit', '', { reply: { msg_type: 'portfolio' } })
  for (const [cause, isMade, isCause] of [
    [refusal, undefined, true],
    [refusal, () => false, false],
    [read, undefined, false],
    [new Error('without a reply'), undefined, false],
    [undefined, undefined, false],
  ] as const) {
    const error = new ApiError('order', 'key', undefined, undefined, cause)
    const make = (() => Promise.reject(error)) as typeof makeOnce
    const options = isMade ? { isMade } : {}
    t.equal(await failure(orderOnce(make, () => Promise.resolve(), options)), isCause ? cause : error)
  }
})

await test('a kept key is forgotten once the outcome is known, followed where it never will be, and kept otherwise', async (t) => {
  for (const [end, expected] of [
    [Promise.resolve('answer'), null],
    [problem('validation_failed'), null],
    [UNKNOWN, 'fresh'],
    [problem('outcome_unknown', 'unknown'), 'fresh+'],
    [problem('answer_not_kept', 'unknown'), 'fresh+'],
    [problem('answer_not_kept_yet', 'unknown'), 'fresh'],
    [problem('no_outcome_unknown', 'unknown'), 'fresh'],
    [problem('outcome_unknown'), null],
  ] as const) {
    const page = rememberingPage(t)
    const made = keptOrder(page, () => (end instanceof Error ? Promise.reject(end) : end))
    if (end instanceof Error) t.equal(await failure(made), end)
    else t.equal(await made, 'answer')
    t.same(page.world.log, ['fresh'])
    t.equal((page.keptOrder() as { key: string } | null)?.key ?? null, expected)
  }
})

await test('an order is over when its key was forgotten or followed, however long the lock takes', async (t) => {
  replace(t, globalThis, 'navigator', { locks: { request } })
  for (const [end, expected] of [
    [undefined, undefined],
    [problem('validation_failed'), undefined],
    [problem('outcome_unknown', 'unknown'), 'fresh+'],
  ] as const) {
    const page = rememberingPage(t)
    const made = keptOrder(page, () => (end ? Promise.reject(end) : Promise.resolve('answer')))
    await made.catch(() => undefined)
    t.equal((page.keptOrder() as { key: string } | null)?.key, expected)
  }
})

await test('of an order of another session only the isMade of the page can tell whether it was made', async (t) => {
  for (const isMade of [undefined, () => true]) {
    const page = rememberingPage(t)
    t.equal(await failure(keptOrder(page, () => Promise.reject(UNKNOWN))), UNKNOWN)
    page.world.session = sessionOf({ session: 'B' })
    page.world.now = NOW + 1
    const make = (async (_order: unknown, look: NonNullable<OnceOptions['isMade']>, choose: ChooseKey) => {
      const refusal = (await failure(Promise.resolve(choose?.(page.core, CALL, 'fresh')))) as ApiError
      t.equal(await look(UNKNOWN), isMade !== undefined)
      if (isMade) t.equal(await look(refusal), true)
      else t.equal(await failure(Promise.resolve().then(() => look(refusal))), refusal)
      // The core makes what the page was not asked the cause of its own error.
      throw isMade ? refusal : new ApiError('order', 'key', undefined, undefined, refusal)
    }) as unknown as typeof makeOnce
    const options = isMade ? { isMade, remember: 'order' } : { remember: 'order' }
    t.match(await failure(orderOnce(make, () => Promise.resolve(''), options)), { outcome: 'unknown' })
    t.match(page.keptOrder(), { key: isMade ? 'fresh' : 'fresh+' })
  }
})
