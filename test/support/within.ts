import type { Test } from 'tap'

/**
 * Reports how long something took. With TIMES=1 it must not take longer than the limit. Otherwise a busy machine could fail
 * a test whose subject is right.
 */
export function within(t: Test, tookMs: number, limitMs: number, what: string): void {
  const result = `${what}: ${Math.round(tookMs)} ms, at most ${limitMs} ms`
  if (process.env['TIMES'] === undefined) t.comment(result)
  else t.ok(tookMs <= limitMs, result)
}
