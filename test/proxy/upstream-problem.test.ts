import { test } from 'tap'
import { Problem } from '../../src/problem.ts'
import {
  conclude,
  isRepeatedOn,
  isWithheld,
  upstreamOutcome,
  upstreamProblem,
} from '../../src/proxy/upstream-problem.ts'

const cause = new Error('broken')

const answered = (status: number) => ({ is: 'answered', response: { status } })
const problem = (status: number, retryAfter?: string) =>
  upstreamProblem({ is: 'withheld', status, ...(retryAfter !== undefined && { retryAfter }) }, true)

/** What a conclusion has thrown, logged and done. */
function concluded(outcome: object, method: string, isSent = true) {
  const log: unknown[] = []
  const line = (fields: object, text: string): void => void log.push([text, { ...fields }])
  const call = {
    endpoint: { method, path: '/route' },
    request: { log: { info: line, warn: line, error: line }, ip: '10.0.0.1', sessionTag: 'tag', subjectTag: 'user' },
    reply: { sent: isSent, hijack: () => void log.push('hijacked') },
  }
  try {
    conclude(outcome as never, call as never)
  } catch (error) {
    return { log, thrown: error as Problem }
  }
  return { log }
}

await test('server errors and redirects stay here, and no other response', (t) => {
  for (const status of [500, 503, 599, 600, 300, 302, 399]) t.equal(isWithheld(status), true, String(status))
  for (const status of [200, 299, 304, 400, 401, 429, 499]) t.equal(isWithheld(status), false, String(status))
  t.same([400, 408, 421, 429].map(isRepeatedOn), [false, true, true, false])
  t.end()
})

await test('metrics tell how each call ended', (t) => {
  const full = Object.assign(new Error('full'), { code: 'EMFILE' })
  for (const [outcome, label] of [
    [answered(200), 'answered'],
    [answered(399), 'answered'],
    [answered(400), 'refused'],
    [answered(429), 'limited'],
    [answered(500), 'server_error'],
    [{ is: 'answered', status: 404 }, 'refused'],
    [{ is: 'withheld', status: 302 }, 'held'],
    [{ is: 'withheld', status: 408 }, 'held'],
    [{ is: 'withheld', status: 500 }, 'server_error'],
    [{ is: 'cut', status: 404, cause }, 'cut'],
    [{ is: 'browserGone', status: 0, sent: 'nothing' }, 'browserGone'],
    [{ is: 'unreachable', cause }, 'unreachable'],
    [{ is: 'unreachable', cause: full }, 'no_descriptor'],
    [{ is: 'lost', cause: full, responseBegan: false }, 'lost'],
    [{ is: 'overBudget', limited: 'all', retryAfterMs: 1 }, 'overBudget'],
  ] as const) {
    t.equal(upstreamOutcome(outcome as never), label)
  }
  t.end()
})

await test('the problem of a call says that its outcome is unknown where something may have been executed', (t) => {
  for (const [outcome, code, status, isUnknown] of [
    [{ is: 'withheld', status: 503 }, 'upstream_error', 503, true],
    [{ is: 'unreachable', cause }, 'upstream_unreachable', 502, false],
    [{ is: 'lost', cause, responseBegan: false }, 'upstream_lost', 502, true],
    [{ is: 'timeout', cause }, 'upstream_timeout', 504, true],
    [{ is: 'overBudget', limited: 'user', retryAfterMs: 1001 }, 'upstream_limit', 429, false],
    [{ is: 'overBudget', limited: 'all', retryAfterMs: 1001 }, 'upstream_budget', 429, false],
  ] as const) {
    const [safe, order] = [upstreamProblem(outcome, true), upstreamProblem(outcome, false)]
    t.match(
      [safe, order],
      [
        { code, status },
        { code, status },
      ],
    )
    t.same([safe.details.outcome, order.details.outcome], [undefined, isUnknown ? 'unknown' : undefined])
    t.equal(order.cause, 'cause' in outcome ? cause : undefined)
    t.equal(order.details.retryAfterSeconds, outcome.is === 'overBudget' ? 2 : undefined)
  }
  t.end()
})

await test('the problem of a response that stays here has its status and its pause, where they can be sent on', (t) => {
  t.match(problem(599), { status: 599, details: { retryAfterSeconds: undefined } })
  t.match(problem(600), { status: 502 })
  t.equal(problem(503, '7').details.retryAfterSeconds, 7)
  t.notOk('retryAfterSeconds' in problem(503, '9999999999').details)
  t.notOk('retryAfterSeconds' in problem(503).details)
  t.match(problem(500), { status: 500, message: 'The trading service answered with an error' })
  t.match(problem(499), { status: 502, message: 'The trading service answered with a redirect.' })
  for (const status of [408, 421]) {
    const message = `The trading service answered ${status}, on which browsers would send the call again.`
    t.match(problem(status, '7'), { status: 502, message, details: { retryAfterSeconds: undefined } })
  }
  t.end()
})

await test('a call that was refused here, or by upstream, ends with its problem', (t) => {
  const refusal = new Problem('body_too_large')
  t.same(concluded({ is: 'bodyRefused', problem: refusal }, 'POST'), { log: [], thrown: refusal })
  for (const [outcome, code] of [
    [{ is: 'withheld', status: 500 }, 'upstream_error'],
    [{ is: 'unreachable', cause }, 'upstream_unreachable'],
    [{ is: 'lost', cause, responseBegan: true }, 'upstream_lost'],
    [{ is: 'timeout', cause }, 'upstream_timeout'],
    [{ is: 'overBudget', limited: 'all', retryAfterMs: 1 }, 'upstream_budget'],
  ] as const) {
    t.match(concluded(outcome, 'POST'), { log: [], thrown: { code } })
  }
  t.equal(concluded({ is: 'withheld', status: 500 }, 'GET').thrown?.details.outcome, undefined)
  t.equal(concluded({ is: 'withheld', status: 500 }, 'POST').thrown?.details.outcome, 'unknown')
  t.end()
})

await test('a response that upstream broke off is a problem as long as the browser has none of it, and else logged', (t) => {
  const cut = { is: 'cut', status: 200, cause }
  const unread = concluded(cut, 'POST', false)
  t.match(unread, { log: [], thrown: { code: 'upstream_lost', cause, details: { outcome: 'unknown' } } })
  t.equal(concluded(cut, 'GET', false).thrown?.details.outcome, undefined)
  const { log, thrown } = concluded(cut, 'POST')
  t.equal(thrown, undefined)
  t.match(log, [['upstream broke off its response', { method: 'POST', route: '/route', cause, count: 1 }]])
  t.end()
})

await test('a browser that has left gets no response, and the log names its call unless that changes nothing', (t) => {
  const left = { is: 'browserGone', sent: 'whole', status: 200, cause }
  t.same(concluded(left, 'GET'), { log: ['hijacked'] })
  const { log } = concluded(left, 'POST')
  const of = { session: 'tag', subject: 'user', client: '10.0.0.1' }
  const line = { audit: 'browser_left', method: 'POST', route: '/route', sent: 'whole', status: 200, cause, ...of }
  t.match(log, [[String, line], 'hijacked'])
  t.end()
})
