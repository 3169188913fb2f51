import type { Test } from 'tap'
import { besideKey } from '../../src/store/keys.ts'
import { MAX_QUEUE_MS, type CallLease } from '../../src/store/shared-limits.ts'
import type { Store } from '../../src/store/store.ts'

let keys = 0
const fresh = (): string => `bff:1:limits:${++keys}`

/** The behaviour of {@link Store.limits} that every store of several instances must have. @param open returns a new handle on the same store */
export async function sharedLimitsContract(t: Test, open: () => Promise<Store>): Promise<void> {
  const { limits } = await open()
  const { limits: elsewhere } = await open()

  await t.test('claim grants up to the limit over all holders, even to concurrent ones', async (t) => {
    const key = besideKey(fresh(), 'relays')
    const claims = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((holder, index) =>
      (index % 2 === 0 ? limits : elsewhere).claim({ key, holder, count: 1 }, 5),
    )
    t.equal((await Promise.all(claims)).filter(Boolean).length, 5)
    t.equal(await limits.claim({ key, holder: 'h', count: 1 }, 5), false)
    t.equal(await limits.claim({ key, holder: 'h', count: 1 }, 6), true, 'another limit is that of the caller')
  })

  await t.test('claim states the whole count of a holder, and a refused one keeps what it has', async (t) => {
    const key = besideKey(fresh(), 'relays')
    t.equal(await limits.claim({ key, holder: 'a', count: 3 }, 5), true)
    t.equal(await limits.claim({ key, holder: 'a', count: 4 }, 5), true, 'not 7')
    t.equal(await elsewhere.claim({ key, holder: 'b', count: 2 }, 5), false)
    t.equal(await elsewhere.claim({ key, holder: 'b', count: 1 }, 5), true)
    t.equal(await elsewhere.claim({ key, holder: 'b', count: 2 }, 5), false)
    t.equal(await limits.claim({ key, holder: 'a', count: 5 }, 5), false, 'the other still has its one')
    await limits.hold([{ key, holder: 'a', count: 3 }])
    t.equal(await elsewhere.claim({ key, holder: 'b', count: 2 }, 5), true)
  })

  await t.test('hold states counts whatever the limit, of many keys at once, and 0 gives all back', async (t) => {
    const many = Array.from({ length: 1201 }, () => besideKey(fresh(), 'relays'))
    await limits.hold(many.map((key) => ({ key, holder: 'a', count: 7 })))
    for (const key of [many[0] ?? '', many[600] ?? '', many[1200] ?? '']) {
      t.equal(await elsewhere.claim({ key, holder: 'b', count: 1 }, 7), false)
      t.equal(await elsewhere.claim({ key, holder: 'b', count: 1 }, 8), true)
    }
    await limits.hold(many.map((key) => ({ key, holder: 'a', count: 0 })))
    for (const key of many.slice(0, 3)) t.equal(await elsewhere.claim({ key, holder: 'b', count: 7 }, 7), true)
    await limits.hold([])
  })

  await t.test(
    'leaseCalls leases half of what is left, at least one, and no more than the limit in a minute',
    async (t) => {
      const inOneMinute = async (lease: () => Promise<CallLease[]>): Promise<CallLease[]> => {
        const leases = await lease()
        const ends = leases.map(({ endsInMs }) => endsInMs)
        return ends.every((end, index) => index === 0 || end <= (ends[index - 1] ?? 0)) ? leases : inOneMinute(lease)
      }
      const leases = await inOneMinute(async () => {
        const key = besideKey(fresh(), 'calls')
        const taken: CallLease[] = []
        for (let count = 0; count < 8; count++) {
          taken.push(await (count % 2 === 0 ? limits : elsewhere).leaseCalls(key, 20))
        }
        return taken
      })
      t.same(
        leases.map(({ calls }) => calls),
        [10, 5, 2, 1, 1, 1, 0, 0],
      )
      for (const { endsInMs } of leases) t.ok(endsInMs > 0 && endsInMs <= 60_000)
      const [first] = leases
      // The minutes are those of the clock, the same for all keys.
      const clock = 60_000 - (Date.now() % 60_000)
      t.ok(Math.abs(((clock - (first?.endsInMs ?? 0) + 90_000) % 60_000) - 30_000) < 5000)
      const all = await inOneMinute(async () => {
        const key = besideKey(fresh(), 'calls')
        return Promise.all(Array.from({ length: 40 }, () => limits.leaseCalls(key, 30)))
      })
      t.equal(
        all.reduce((sum, { calls }) => sum + calls, 0),
        30,
      )
    },
  )

  await t.test('enqueue appends stretches of time, and begins at once where none is left', async (t) => {
    const key = fresh()
    t.equal(await limits.enqueue(key, 3000), 0)
    const second = await elsewhere.enqueue(key, 500)
    t.ok(second > 2000 && second <= 3000, `${second}`)
    const third = await limits.enqueue(key, 500)
    t.ok(third > second && third <= 3500, `${third}`)
    const full = fresh()
    for (const at of [0, 1, 2]) {
      const begins = await (at === 1 ? elsewhere : limits).enqueue(full, MAX_QUEUE_MS - 1000)
      t.ok(begins <= MAX_QUEUE_MS, `stretch ${at} begins in ${begins} ms, however long the queue is`)
    }
    t.equal(await limits.enqueue(fresh(), 0), 0)
    t.equal(await limits.enqueue(fresh(), 0.5), 0)
  })
}
