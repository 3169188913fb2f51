import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'
import * as fc from 'fast-check'
import { test } from 'tap'
import { auditSchema, auditTable, committedSchema } from '../support/telemetry/audit-schema.ts'
import { auditFaults } from '../support/telemetry/audit-scan.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const REQUEST = '0b0c5d5e-52a5-4f0c-9f0a-0123456789ab'
const COMMON = {
  level: 30,
  time: '2026-11-22T09:00:00.000Z',
  instance: 'bff-1/7/3f9a1c',
  version: '1.0.0',
  msg: 'logged in',
}
const LOGIN = { ...COMMON, audit: 'login', reqId: REQUEST, flow: 'login', session: 'abcdefghi_', client: '192.0.2.1' }
const FAILED = {
  ...COMMON,
  audit: 'login_failed',
  reqId: REQUEST,
  error: 'login_failed',
  client: '2001:db8::1',
  cause: { type: 'Error', message: 'outer', cause: { type: 'Error', code: 'E1', message: 'inner' } },
}
const OPENED = {
  ...COMMON,
  audit: 'relay_opened',
  kind: 'demo',
  reqId: REQUEST,
  session: '',
  client: '192.0.2.1',
  account: 'abcdefghij',
  ms: 1.5,
}
const ENDED = {
  ...COMMON,
  audit: 'relay_ended',
  kind: 'public',
  reqId: REQUEST,
  session: '',
  client: '::1',
  seconds: 3,
}

await test('docs/audit.schema.json and the table of docs/audit.md are made from the table in src/telemetry/audit', (t) => {
  t.same(committedSchema(), auditSchema(), 'node test/support/telemetry/audit-schema.ts')
  const guide = readFileSync(`${ROOT}docs/audit.md`, 'utf8')
  t.ok(guide.includes(`${auditTable()}\n\n`), 'node test/support/telemetry/audit-schema.ts')
  t.end()
})

await test('the check of every test server and a validator of JSON Schema agree on any line', (t) => {
  const isValid = new Ajv2020({ allErrors: true, strict: true }).compile(auditSchema())
  for (const line of [LOGIN, FAILED, OPENED, ENDED]) {
    t.ok(isValid(line), line.audit)
    t.same(auditFaults(line), [], line.audit)
  }
  const name = fc.constantFrom(...Object.keys({ ...LOGIN, ...FAILED, ...OPENED, ...ENDED, count: 1, toString: 1 }))
  const value = fc.oneof(
    fc.constantFrom<unknown>(
      '',
      'login',
      'session',
      'toString',
      '__proto__',
      'abcdefghij',
      REQUEST,
      0,
      30,
      40,
      -1,
      1.5,
      5000,
      null,
      true,
      {},
      [],
      undefined,
    ),
    fc.string({ unit: 'grapheme', maxLength: 300 }),
    fc.record(
      { type: fc.string(), message: fc.string(), code: fc.constantFrom<unknown>('E1', 1) },
      { requiredKeys: [] },
    ),
  )
  const edits = fc.array(fc.tuple(name, value), { minLength: 1, maxLength: 3 })
  let invalid = 0
  fc.assert(
    fc.property(fc.constantFrom<object>(LOGIN, FAILED, OPENED, ENDED), edits, (line, edited) => {
      // As in the log, a member without a value is absent.
      const text = JSON.stringify({ ...line, ...Object.fromEntries(edited) })
      const parsed = JSON.parse(text) as Record<string, unknown>
      const verdict = isValid(parsed)
      if (!verdict) invalid++
      return verdict === (auditFaults(parsed).length === 0)
    }),
    { numRuns: 2000 },
  )
  t.ok(invalid > 500, 'many of the lines are wrong')
  t.end()
})

await test('every audit line is written through the table', (t) => {
  const files = globSync('src/**/*.ts', { cwd: ROOT }).filter((file) => file !== 'src/telemetry/audit/audit.ts')
  t.ok(files.length > 150)
  t.same(
    files.filter((file) => /\baudit: ['"`]/.test(readFileSync(ROOT + file, 'utf8'))),
    [],
  )
  t.end()
})
