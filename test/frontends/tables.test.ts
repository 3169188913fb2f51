import { test } from 'tap'
import type { AuthErrorCode } from '../../client/dist/client.js'
import { Problem, PROBLEM_CODES } from '../../src/problem.ts'
import { CLOSE } from '../../src/sockets/close-codes.ts'
import { FRONTENDS_GUIDE } from '../support/browser/documented-samples.ts'

/** A chapter of docs/frontends.md, without the chapters below it. */
function chapter(heading: string): string {
  const [, text = ''] = new RegExp(`^#+ ${heading}\\n(.*?)^#`, 'ms').exec(FRONTENDS_GUIDE) ?? []
  return text
}

await test('docs/frontends.md says what to do about every auth_error', (t) => {
  const codes: Record<AuthErrorCode, true> = {
    access_denied: true,
    state_mismatch: true,
    invalid_grant: true,
    invalid_client: true,
    provider_unavailable: true,
    try_later: true,
    login_failed: true,
  }
  const rows = [...chapter('When it did not work').matchAll(/^\| `(\w+)`.* \| .+ \| .+ \|$/gm)].map(([, code]) => code)
  t.same(rows, Object.keys(codes))
  t.end()
})

await test('docs/frontends.md says what to do about every problem code of a call', (t) => {
  const table = chapter('Errors')
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .join('\n')
  const documented = new Set([...table.matchAll(/`(\w+)`/g)].map(([, code = '']) => code))
  // Browsers get these without a call.
  const elsewhere = new Set(['origin_rejected', 'navigation_required'])
  for (const code of PROBLEM_CODES) t.equal(documented.has(code), !elsewhere.has(code), code)
  t.end()
})

await test('docs/frontends.md lists every close code of the server with its reasons', (t) => {
  const table = chapter('How a socket ends')
  for (const { code, reason } of Object.values(CLOSE)) {
    const rows = table.split('\n').filter((line) => line.startsWith(`| ${code} |`))
    t.ok(
      rows.some((row) => row.includes(`\`${reason}\``)),
      `${code} ${reason}`,
    )
  }
  t.end()
})

await test('docs/frontends.md has a sentence for every problem code and every close of the server, and for nothing else', (t) => {
  const rows = chapter('What to tell the user').matchAll(/^\| `(\w+)` \| (\d*) *\| ?(\d*) *\| (.+) \|$/gm)
  const told: string[] = []
  for (const [, name, status, close, sentence = ''] of rows) {
    t.match(sentence, /^[A-Z][^]*[.`]$/, `${name}: a whole sentence`)
    if (status) told.push(`${name} ${status}`)
    if (close) told.push(`${name} ${close}`)
  }
  const problems = PROBLEM_CODES.map((code) => `${code} ${new Problem(code).status}`)
  const closes = Object.values(CLOSE).map(({ code, reason }) => `${reason} ${code}`)
  t.same(told.toSorted(), [...problems, ...closes].toSorted())
  t.end()
})
