import type { Test } from 'tap'
import { scanAudit } from './audit-scan.ts'
import { huntTokens } from './token-hunt.ts'

/** Shorter strings are words of a test, not secrets. */
const SHORTEST = 16

const cookieValues = new Set<string>()
const sources: Iterable<string>[] = [cookieValues]

/** No server of this test file may log any of these secrets, including those that are added later. */
export function keepOutOfLogs(secrets: Iterable<string>): void {
  sources.push(secrets)
}

/** Like {@link keepOutOfLogs}, for the values of a Cookie header and for the ids before their signatures. */
export function keepCookiesOutOfLogs(header: string | undefined): void {
  for (const pair of (header ?? '').split('; ')) {
    const value = pair.slice(pair.indexOf('=') + 1)
    cookieValues.add(value).add(value.split('.', 1)[0] ?? '')
  }
}

/**
 * Fails the test when the log of a server has a secret of this test file, or an audit line that is not documented.
 * @param isOlder whether the server is of a version whose lines this one does not document
 */
export function scanLog(t: Pick<Test, 'fail'>, text: string, isOlder = false): void {
  if (!isOlder) scanAudit(t, text)
  scanForSecrets(t, 'log', text)
}

/** Fails the test when what a server has said somewhere has a secret of this test file. */
export function scanForSecrets(t: Pick<Test, 'fail'>, where: string, text: string): void {
  const secrets = new Set<string>()
  for (const source of sources) for (const secret of source) if (secret.length >= SHORTEST) secrets.add(secret)
  if (huntTokens([{ where, text }], secrets).length === 0) return
  const lines = text.split('\n').map((line) => ({ where: line, text: line }))
  // This runs in a teardown, where an exception would skip the other teardowns.
  t.fail(`a secret is in the ${where}`, { finds: huntTokens(lines, secrets) })
}
