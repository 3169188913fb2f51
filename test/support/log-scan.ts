import type { Test } from 'tap'
import { huntTokens } from './token-hunt.ts'

/** Shorter ones are words of a test, not secrets. */
const SHORTEST = 16

const cookieValues = new Set<string>()
const sources: Iterable<string>[] = [cookieValues]

/** No server of this test file may log any of these, nor what is added to the set later. */
export function keepOutOfLogs(secrets: Iterable<string>): void {
  sources.push(secrets)
}

/** The same for the values of a Cookie header, and for the ids in them, which come before a signature. */
export function keepCookiesOutOfLogs(header: string | undefined): void {
  for (const pair of (header ?? '').split('; ')) {
    const value = pair.slice(pair.indexOf('=') + 1)
    cookieValues.add(value).add(value.split('.', 1)[0] ?? '')
  }
}

/** Fails the test when a server of it has logged a secret that anybody in this test file was given. */
export function scanLog(t: Pick<Test, 'fail'>, text: string): void {
  const secrets = new Set<string>()
  for (const source of sources)
    for (const secret of source) if (secret.length >= SHORTEST) secrets.add(secret)
  if (huntTokens([{ where: 'log', text }], secrets).length === 0) return
  const lines = text.split('\n').map((line) => ({ where: line, text: line }))
  // In a teardown, where a throw would keep the others from running.
  t.fail('a secret is in the log', { finds: huntTokens(lines, secrets) })
}
