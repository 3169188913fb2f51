import { test } from 'tap'
import type { AuthErrorCode, Client, CloseReason, ProblemCode } from '../../client/dist/client.js'
import type { AuthError } from '../../src/login/auth-error.ts'
import { PROBLEM_CODES, type ProblemCode as ServerCode } from '../../src/problem.ts'

declare module '../../client/dist/client.js' {
  interface MorePaths {
    GET: '/partners/analytics/v1/overview'
  }
}

type Equal<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false

/** Never called: the compiler is the test. */
export async function typed({ api, session }: Client): Promise<unknown> {
  await api('/trading/v1/options/accounts')
  await api('/trading/v1/options/accounts?page=2', { timeoutMs: 1000 })
  await api('/partners/analytics/v1/overview?start_date=2026-01-01&end_date=2026-01-31')
  await api('/trading/v1/options/contracts/bulk-purchase/demo', { method: 'POST', json: {} })
  // @ts-expect-error there is no such path
  await api('/trading/v2/options/accounts')
  // @ts-expect-error there is no such kind
  await api('/trading/v1/options/contracts/bulk-purchase/other', { method: 'POST' })
  // @ts-expect-error wallets are only read
  await api('/wallet/v1/wallets', { method: 'POST' })
  // @ts-expect-error a transfer is only made
  await api('/payment-agents/v1/transfer')
  const state = session.get()
  // @ts-expect-error only an active session has a scope
  if (state.status !== 'active') return state.scope
  const codes: [Equal<ProblemCode, ServerCode>, Equal<AuthErrorCode, AuthError>] = [true, true]
  const reason: CloseReason = 'slow_consumer'
  return [state.scope, codes, reason]
}

await test('the types of the package are those of the server', (t) => {
  const code: ProblemCode | undefined = PROBLEM_CODES[0]
  t.ok(code)
  t.end()
})
