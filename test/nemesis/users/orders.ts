import { setTimeout as pause } from 'node:timers/promises'
import { TRANSFER } from '../../support/user.ts'
import type { Call } from '../history.ts'
import type { Page } from './page.ts'

const BODY = JSON.stringify({ data: { to_nickname: 'somebody', amount: '0.01', currency: 'USD' } })
/** More attempts than any fault of a plan needs. */
const ATTEMPTS = 24
const AGAIN_MS = 700
/** The share of orders that two tabs send at the same moment. */
const TWICE = 0.15
/** Whoever is told one of these repeats the call: it was not executed, or its outcome is to be asked for. */
const REPEATED: ReadonlySet<string> = new Set([
  'no_answer',
  'idempotency_in_progress',
  'session_store_unavailable',
  'shutting_down',
  'orders_paused',
  'credential_renewed',
  'provider_unavailable',
  'upstream_unreachable',
  'upstream_lost',
  'upstream_timeout',
  'upstream_error',
  'upstream_budget',
  'upstream_limit',
  'rate_limited',
])

/** An order with a key, sent by any instance and repeated until its outcome is known, as `once` of the package does it. */
export async function order(page: Page, key: string): Promise<void> {
  const { session } = page
  const send = (): Promise<Call> => page.ask({ kind: 'order', method: 'POST', path: TRANSFER, key, body: BODY })
  if (page.random() < TWICE) await Promise.all([send(), send()])
  for (let attempt = 0; attempt < ATTEMPTS && page.session === session; attempt++) {
    const { result } = await send()
    if (!REPEATED.has(result)) return
    await pause(AGAIN_MS * (0.5 + page.random()))
  }
}
