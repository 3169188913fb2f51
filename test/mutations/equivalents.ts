import type { Mutant } from './run.ts'

/** A slip that changes nothing that anybody could see. */
interface Equivalent {
  readonly file: string
  /** The line in which it is. */
  readonly line: string
  readonly replacement: string
  readonly why: string
}

const MOMENT = 'A clock of fractions of a millisecond never shows this very moment.'
const FAULT = 'After a fault of this program it does not matter whether a record that may exist is removed.'
const COUNTED = 'The commands of a connection are carried out in order, so whoever counts next counts this, too.'
const NO_MARK = 'No value has this mark, so that it is read all the same.'
const NO_CASE = 'Without a case of its own nothing is returned, which counts as no.'

export const EQUIVALENTS: readonly Equivalent[] = [
  {
    file: 'src/proxy/idempotency/claim.ts',
    line: 'const isLeased = standstill.now() < this.#leasedAt + this.#deps.leaseMs',
    replacement: 'standstill.now() <= this.#leasedAt + this.#deps.leaseMs',
    why: MOMENT,
  },
  {
    file: 'src/proxy/idempotency/claim.ts',
    line: 'return !this.#isLost && isLeased && storeNow() < Math.min(this.#leaseUntil, this.own.expiresAt)',
    replacement: 'storeNow() <= Math.min(this.#leaseUntil, this.own.expiresAt)',
    why: MOMENT,
  },
  {
    file: 'src/proxy/idempotency/claim.ts',
    line: 'if (texts.length > 0 && expiresAt > storeNow() && (await store.create(recordKey, next, expiresAt))) {',
    replacement: 'expiresAt >= storeNow()',
    why: MOMENT,
  },
  {
    file: 'src/proxy/idempotency/claim.ts',
    line: 'this.#texts = [next, ...texts.filter((text) => text !== next)]',
    replacement: 'texts',
    why: 'A text that is there twice is only tried twice.',
  },
  {
    file: 'src/proxy/idempotency/claim.ts',
    line: 'this.#texts = [next, ...texts.filter((text) => text !== next)]',
    replacement: 'true',
    why: 'A text that is there twice is only tried twice.',
  },
  {
    file: 'src/proxy/idempotency/claim.ts',
    line: 'await this.#deps.usage.removeRecord(this.own.session).catch(() => undefined)',
    replacement: 'this.#deps.usage.removeRecord(this.own.session).catch(() => undefined)',
    why: COUNTED,
  },
  {
    file: 'src/proxy/idempotency/claim.ts',
    line: 'await usage.addBytes(this.own.session, -more).catch(() => undefined)',
    replacement: 'usage.addBytes(this.own.session, -more).catch(() => undefined)',
    why: COUNTED,
  },
  {
    file: 'src/proxy/idempotency/idempotency-records.ts',
    line: 'if (error instanceof StoreUnavailable) {',
    replacement: 'true',
    why: FAULT,
  },
  {
    file: 'src/proxy/idempotency/idempotency-records.ts',
    line: 'if (isCreated) await store.removeIf(recordKey, text)',
    replacement: 'true',
    why: 'Nobody else can have written this very text.',
  },
  {
    file: 'src/proxy/idempotency/idempotency-records.ts',
    line: 'return storeNow() > leaseUntil + clockSkewMs && this.#deps.store.availableForMs() >= settleMs',
    replacement: 'storeNow() >= leaseUntil + clockSkewMs',
    why: MOMENT,
  },
  {
    file: 'src/proxy/idempotency/idempotency-records.ts',
    line: 'return storeNow() > leaseUntil + clockSkewMs && this.#deps.store.availableForMs() >= settleMs',
    replacement: 'this.#deps.store.availableForMs() > settleMs',
    why: MOMENT,
  },
  {
    file: 'src/proxy/idempotency/key-usage.ts',
    line: 'if (total <= 0) return { records: 0, bytes: 0 }',
    replacement: 'total < 0',
    why: 'A total of 0 is no records and no bytes in any case.',
  },
  {
    file: 'src/sessions/near-cache.ts',
    line: 'this.#isHeard()',
    replacement: ';',
    why: 'The next look at the cache notices the same standstill, and forgets as much.',
  },
  {
    file: 'src/sessions/near-cache.ts',
    line: 'if (expiryOf(session) !== undefined) void this.#sessions.endings.recordExpiry(session)',
    replacement: 'true',
    why: 'Endings.recordExpiry does nothing for a session within its limits.',
  },
  {
    file: 'src/sessions/near-cache.ts',
    line: 'for (let leftMs = MAX_DEAF_MS; leftMs > 0; leftMs = giveUpAt - standstill.now()) {',
    replacement: 'leftMs >= 0',
    why: MOMENT,
  },
  {
    file: 'src/sessions/own-sessions.ts',
    line: "const [index = ''] = this.#index.keysOf(subject)",
    replacement: '"Stryker was here!"',
    why: 'A subject always has the key of an index.',
  },
  {
    file: 'src/sessions/own-sessions.ts',
    line: "const [own = ''] = this.#index.keysOf(subject)",
    replacement: '"Stryker was here!"',
    why: 'A subject always has the key of an index.',
  },
  {
    file: 'src/sessions/own-sessions.ts',
    line: "const { value = '', expiresAt = 0 } = (await this.#store.readUntracked(partKey(index, 'ended'))) ?? {}",
    replacement: '"Stryker was here!"',
    why: 'Any text stands for no mark, as long as it is always the same.',
  },
  {
    file: 'src/sessions/refusals.ts',
    line: "['invalid_request', 'never'],",
    replacement: '""',
    why: NO_CASE,
  },
  {
    file: 'src/sessions/refusals.ts',
    line: "['invalid_scope', 'never'],",
    replacement: '""',
    why: NO_CASE,
  },
  {
    file: 'src/sessions/refusals.ts',
    line: "['unsupported_grant_type', 'never'],",
    replacement: '""',
    why: NO_CASE,
  },
  {
    file: 'src/sessions/refusals.ts',
    line: "['invalid_target', 'never'],",
    replacement: '""',
    why: NO_CASE,
  },
  {
    file: 'src/sessions/refusals.ts',
    line: "['use_dpop_nonce', 'never'],",
    replacement: '""',
    why: NO_CASE,
  },
  {
    file: 'src/sessions/refusals.ts',
    line: "case 'never':",
    replacement: '""',
    why: NO_CASE,
  },
  {
    file: 'src/sessions/shared-refusals.ts',
    line: "const { value = '', now } = await store.readMarked(REFRESHES_KEY, '')",
    replacement: '"Stryker was here!"',
    why: NO_MARK,
  },
  {
    file: 'src/sessions/shared-refusals.ts',
    line: "const { now } = await this.#store.readMarked(REFRESHES_KEY, '')",
    replacement: '"Stryker was here!"',
    why: NO_MARK,
  },
  {
    file: 'src/sessions/shared-refusals.ts',
    line: 'if (expiredAt <= now && last < expiredAt && next === last + RETRY_REFUSED_MS) return 0',
    replacement: 'expiredAt < now',
    why: MOMENT,
  },
  {
    file: 'src/sessions/shared-refusals.ts',
    line: 'if (expiredAt <= now && last < expiredAt && next === last + RETRY_REFUSED_MS) return 0',
    replacement: 'last <= expiredAt',
    why: MOMENT,
  },
  {
    file: 'src/sessions/shared-refusals.ts',
    line: 'return next > now ? Math.min(next - now, MAX_PAUSE_MS) : 0',
    replacement: 'next >= now',
    why: 'No time is left in either case.',
  },
  {
    file: 'src/sessions/shared-refusals.ts',
    line: 'await this.#news.change((news, now) => noteGrants(news, grants, now))',
    replacement: 'this.#news.change((news, now) => noteGrants(news, grants, now))',
    why: 'It is done in the background: nobody waits for it, and it never rejects.',
  },
  {
    file: 'src/proxy/idempotency/compact-record.ts',
    line: 'case undefined:',
    replacement: 'case undefined:',
    why: 'Without a case of its own nothing is returned either.',
  },
  {
    file: 'src/time/window.ts',
    line: 'if (now >= this.#endsAt) {',
    replacement: 'now > this.#endsAt',
    why: MOMENT,
  },
]

/** Whether it is known that a slip changes nothing. */
export function isEquivalent(file: string, line: string, { replacement }: Mutant): boolean {
  return EQUIVALENTS.some((each) => each.file === file && each.line === line && each.replacement === replacement)
}
