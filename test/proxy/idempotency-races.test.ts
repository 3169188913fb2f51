import * as fc from 'fast-check'
import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { IdempotencyRecords } from '../../src/proxy/idempotency/idempotency-records.ts'
import { Envelope } from '../../src/sessions/index.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { ANSWER, DIGEST, LIMITS, sessionIn } from '../support/idempotency/records.ts'
import { GatedStore } from '../support/idempotency/shared-store-link.ts'
import { SECRETS } from '../support/server/test-server.ts'

/** All keys belong to one session. */
const MANY = { ...LIMITS, maxRecords: 1_000_000, maxKeptBytes: 1_000_000 }
/** No lease runs out. */
const TIMES = { leaseMs: 3_600_000, clockSkewMs: 0, settleMs: 0 }

/** `lost`: the command is not carried out. `silent`: it is, and its reply is lost. */
type Fate = 'replies' | 'lost' | 'silent'
/** What comes of a call that is sent. `freed`: upstream has not executed it. `died`: the instance has, with its claim. */
type End = 'answered' | 'freed' | 'unknown' | 'died'
/** A store whose commands are carried out, and fail, as a scheduler and a list of fates say. */
class SteppedStore extends GatedStore {
  #schedule: fc.Scheduler | undefined
  #fates: Iterator<Fate> = [].values()

  /** From now on commands have these fates, and all that come later get a reply. */
  begin(schedule: fc.Scheduler, fates: readonly Fate[]): void {
    this.#schedule = schedule
    this.#fates = fates.values()
  }

  /** Nothing is interrupted here, so nobody needs to hear of changes. */
  override onChange(): void {}

  protected override async pass<Reply>(command: () => Promise<Reply>): Promise<Reply> {
    const fate = this.#fates.next().value ?? 'replies'
    await this.#schedule?.schedule(Promise.resolve(), 'command')
    if (fate === 'lost') throw new StoreUnavailable(fate)
    const reply = await command()
    if (fate === 'silent') throw new StoreUnavailable(fate)
    await this.#schedule?.schedule(Promise.resolve(), 'reply')
    return reply
  }
}

const session = await sessionIn(new MemoryStore())
const store = new SteppedStore()
let keys = 0

/** Has callers use one key at the same time. @returns how many calls upstream executed, and whether the key is free again */
async function race(schedule: fc.Scheduler, ends: readonly End[], fates: readonly Fate[]) {
  store.begin(schedule, fates)
  const key = `k${++keys}`
  let claimed = 0
  let executed = 0
  const one = async (end: End): Promise<void> => {
    // Each is an instance of its own.
    const records = new IdempotencyRecords(store, new Envelope(new Changeable([SECRETS])), MANY, TIMES)
    const result = await records.claim(session, key, DIGEST).catch((error: unknown) => {
      if (!(error instanceof StoreUnavailable)) throw error
    })
    if (result?.is === 'claimed') {
      claimed++
      if (end !== 'freed') executed++
      await schedule.schedule(Promise.resolve(), 'upstream')
      if (end === 'answered') await result.claim.keep(ANSWER)
      if (end === 'unknown') await result.claim.finish({ is: 'unknown' })
      if (end === 'freed') await result.claim.free()
    }
    // What could not be written is written now.
    await records.close()
  }
  await schedule.waitFor(Promise.all(ends.map(one)))
  store.begin(schedule, [])
  const later = new IdempotencyRecords(store, new Envelope(new Changeable([SECRETS])), MANY, TIMES)
  const last = await schedule.waitFor(later.claim(session, key, DIGEST))
  return { claimed, executed, isFree: last.is === 'claimed' }
}

const callers = fc.array(fc.constantFrom<End>('answered', 'freed', 'unknown', 'died'), { minLength: 2, maxLength: 5 })
const fate = fc.oneof({ weight: 8, arbitrary: fc.constant<Fate>('replies') }, fc.constantFrom<Fate>('lost', 'silent'))

await test('a key that several callers claim at once', async (t) => {
  await t.test('is executed once at most, in whatever order commands are carried out, and whichever fail', async () => {
    const once = fc.asyncProperty(fc.scheduler(), callers, fc.array(fate, { maxLength: 40 }), async (...run) => {
      const { executed } = await race(...run)
      return executed <= 1
    })
    await fc.assert(once, { numRuns: 200 })
  })

  await t.test('is sent by one of its callers, and is free unless upstream executed it', async () => {
    const lives = fc.asyncProperty(fc.scheduler(), callers, async (schedule, some) => {
      const { claimed, executed, isFree } = await race(schedule, some, [])
      return claimed >= 1 && isFree === (executed === 0)
    })
    await fc.assert(lives, { numRuns: 200 })
  })
})
