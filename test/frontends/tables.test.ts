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

/** The rows of the table of codes: their cells. */
const CODES = [...chapter('All codes').matchAll(/^\| (?!Code|---)(.+) \|$/gm)].map(([, row = '']) =>
  row.split(/ ?\|/).map((cell) => cell.trim()),
)

await test('docs/frontends.md has every problem code and every close of the server in one table, and nothing else', (t) => {
  const told = CODES.flatMap(([name = '', status = '', close = '']) =>
    name.startsWith('`') ? [status, close].filter((code) => /^\d+$/.test(code)).map((code) => `${name} ${code}`) : [],
  )
  const problems = PROBLEM_CODES.map((code) => `\`${code}\` ${new Problem(code).status}`)
  const closes = Object.values(CLOSE).map(({ code, reason }) => `\`${reason}\` ${code}`)
  // The trading service's close with a code that is reserved.
  const others = ['`44xx …` 4000']
  t.same(told.toSorted(), [...problems, ...closes, ...others].toSorted())
  t.end()
})

await test('The table of codes says of each what happened, what to do and what to say, in whole sentences', (t) => {
  t.ok(CODES.length > PROBLEM_CODES.length + 5)
  for (const [name = '', status, close, ...sentences] of CODES) {
    t.ok(status !== '' || close !== '', `${name}: where it comes`)
    t.equal(sentences.length, 3, name)
    for (const sentence of sentences) t.match(sentence, /^[A-Z][^]*[.`]$/, `${name}: a whole sentence`)
  }
  t.end()
})
