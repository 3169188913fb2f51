import type { Test } from 'tap'

const isTimed = process.env['TIMES'] !== undefined

/** Ends the title of a test that checks by {@link within} that a second is enough, where that is checked. */
export const WITHIN_A_SECOND = isTimed ? ' within a second' : ''

/**
 * Reports how long something took. With TIMES=1, which `npm run test:browsers` sets, it must not take longer than the
 * limit. Otherwise a busy machine could fail a test whose subject is right.
 */
export function within(t: Test, tookMs: number, limitMs: number, what: string): void {
  const result = `${what}: ${Math.round(tookMs)} ms, at most ${limitMs} ms`
  if (isTimed) t.ok(tookMs <= limitMs, result)
  else t.comment(result)
}
