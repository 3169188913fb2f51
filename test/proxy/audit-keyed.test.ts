import type { FastifyRequest } from 'fastify'
import { test } from 'tap'
import type { Call } from '../../src/proxy/call.ts'
import { auditKeyed } from '../../src/proxy/idempotency/audit-keyed.ts'

type Outcome = Parameters<typeof auditKeyed>[2]

/** What is counted and logged of a call whose key has this outcome. */
function audited(outcome: Outcome) {
  const counted: unknown[] = []
  const lines: unknown[][] = []
  const log = Object.fromEntries(
    ['info', 'warn', 'error'].map((level) => [level, (...args: unknown[]) => lines.push([level, ...args])]),
  )
  const fields = { log, sessionTag: 'session', subjectTag: 'subject', ip: '192.0.2.1', accountTag: () => 'account' }
  const call = { endpoint: { method: 'POST', path: '/orders/:id' }, request: fields as unknown as FastifyRequest }
  auditKeyed({ idempotency: { inc: (labels: unknown) => counted.push(labels) } } as never, call as Call, outcome)
  return { counted, lines }
}

await test('each outcome of a key that is not the usual one has a line that says what happened to whom', (t) => {
  const sentences: readonly (readonly [Outcome, level: 'info' | 'warn', RegExp])[] = [
    ['unknown', 'warn', /^the outcome of a call .* is unknown$/],
    ['replayed', 'info', /got the response of the first$/],
    ['in_progress', 'warn', /refused while the first runs$/],
    ['repeated_unknown', 'warn', /because the outcome of the first is unknown$/],
    ['repeated_not_kept', 'warn', /because the response of the first was not kept$/],
    ['key_reused', 'warn', /^another call with a used Idempotency-Key was refused$/],
    ['too_many', 'warn', /has used too many Idempotency-Keys$/],
    ['record_lost', 'warn', /was replaced or lost while the call ran$/],
  ]
  for (const [outcome, level, message] of sentences) {
    const { counted, lines } = audited(outcome)
    t.strictSame(counted, [{ outcome }])
    t.strictSame(
      lines.map((line) => line.slice(0, 2)),
      [
        [
          level,
          {
            audit: 'idempotency',
            outcome,
            method: 'POST',
            route: '/orders/:id',
            session: 'session',
            subject: 'subject',
            client: '192.0.2.1',
            account: 'account',
          },
        ],
      ],
    )
    t.match(lines[0]?.[2], message)
  }
  t.end()
})

await test('the usual outcomes are only counted', (t) => {
  for (const outcome of ['answered', 'unsent'] as const) {
    t.strictSame(audited(outcome as Outcome), { counted: [{ outcome }], lines: [] })
  }
  t.end()
})
