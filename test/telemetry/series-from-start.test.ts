import { test } from 'tap'
import { createMetrics } from '../../src/telemetry/metrics.ts'

const REFUSALS = ['access_denied', 'invalid_client', 'invalid_grant', 'login_failed']

await test('logins and refreshes are counted from 0 in every series, so that an alert sees the first event of each', async (t) => {
  const { registry, logins, refreshes } = createMetrics()
  const text = await registry.metrics()
  const atStart = (name: string): string[] =>
    [...text.matchAll(new RegExp(`^${name}\\{(.*)\\} 0$`, 'gm'))].map(([, labels = '']) => labels).toSorted()
  const outcomes = [...REFUSALS, 'finished', 'provider_unavailable', 'rate_limited', 'state_mismatch', 'try_later']
  const ofLogins = ['login', 'signup', 'unknown'].flatMap((flow) =>
    outcomes.map((outcome) => `flow="${flow}",outcome="${outcome}"`),
  )
  t.same(atStart('bff_logins_total'), ofLogins.toSorted())
  t.same(
    atStart('bff_token_refreshes_total'),
    [...REFUSALS, 'granted', 'unavailable'].map((outcome) => `outcome="${outcome}"`).toSorted(),
  )
  logins.inc({ flow: 'login', outcome: 'finished' })
  refreshes.inc({ outcome: 'granted' })
  t.match(await registry.metrics(), /^bff_logins_total\{flow="login",outcome="finished"\} 1$/m)
})
