import { samplesOf } from '../../support/telemetry/metrics.ts'
import { until } from '../../support/time/until.ts'
import { ACCOUNTS } from '../../support/user.ts'
import { market, orders, trading } from './dealings.ts'
import { ends, operator, renewal } from './endings.ts'
import { hasSubjects, told, type Part } from './part.ts'
import type { RowWorld } from './row-world.ts'

const SIDC = '6a1c4d2e-0000-4000-8000-000000000000'
const LINK = `/auth/signup?return_to=/after&sidc=${SIDC}&utm_source=CU1&utm_medium=affiliate&utm_campaign=autumn`
/** The level of a line of the log. */
const ERROR = 50

const visitor: Part = async (world, expect) => {
  const { servers, settings } = world
  for (const { url, opsUrl, port } of servers) {
    const ready = await fetch(`${opsUrl}/readyz`)
    expect(ready.status === 200, `/readyz says ${await ready.text()}`)
    const nobody = world.person('nobody')
    const session = await nobody.call('GET', '/auth/session', { at: { port } })
    expect(session.json['authenticated'] === false, `a session of nobody: ${told(session)}`)
    const refused = await nobody.call('GET', ACCOUNTS, { at: { port } })
    expect(refused.status === 401 && refused.json['code'] === 'login_required', `a call of nobody: ${told(refused)}`)
    for (const path of ['/openapi.json', '/client.js', '/problems/not_found']) {
      const { status } = await fetch(`${url}${path}`)
      expect(status === 200, `${path} gets ${status}`)
    }
    const health = await nobody.call('GET', '/api/v1/health', { at: { port } })
    expect(health.status === 200, `health: ${told(health)}`)
    const overview = await nobody.call('GET', '/api/partners/analytics/v1/overview', { at: { port } })
    const isRouted = settings['PARTNER_OVERVIEW_PATH'] !== undefined
    expect(overview.status === (isRouted ? 401 : 404), `the overview: ${told(overview)}`)
    const page = await nobody.call('GET', '/some/page', { at: { port }, headers: { accept: 'text/html' } })
    expect(page.status === (settings['STATIC_DIR'] ? 200 : 404), `a page gets ${told(page)}`)
    const csp = page.headers['content-security-policy']
    if (settings['STATIC_CSP']) expect(csp === settings['STATIC_CSP'], `its policy is ${String(csp)}`)
    const controls = await fetch(`${opsUrl}/controls`)
    expect(controls.status === (settings['OPS_TOKEN'] ? 401 : 404), `/controls gets ${controls.status}`)
  }
}

const partner: Part = async (world, expect) => {
  const { settings, servers } = world
  const person = world.ann
  const cancelled = await person.start(LINK)
  const header = cancelled.arrival.hops[0]?.headers.get('x-attribution')
  expect(header === 'complete', `X-Attribution is ${header}`)
  // The user tries again without the link.
  const isKept = settings['ATTRIBUTION_TTL_SECONDS'] !== '0'
  const login = await person.start(isKept ? '/auth/signup?return_to=/after' : LINK)
  const { asked } = login
  const wanted = {
    prompt: 'registration',
    sidc: SIDC,
    utm_source: 'CU1',
    utm_campaign: 'autumn',
    app_id: settings['LEGACY_APP_ID'] ?? null,
    audience: settings['AUTHORIZATION_PARAMS'] ? 'api' : null,
    scope: settings['OAUTH_SCOPE'] ?? 'trade account_manage',
  }
  for (const [name, value] of Object.entries(wanted))
    expect(asked.get(name) === value, `${name} is ${asked.get(name)} at the provider`)
  const arrival = await login.finish()
  expect(
    arrival.url.href === new URL('/after', settings['FRONTEND_URL'] ?? world.servers[0]?.url).href,
    `the sign-up ends at ${arrival.url.href}`,
  )
  const count = await samplesOf(servers[0]?.opsUrl ?? '', 'bff_signups_completed_total')
  expect(count.get('attributed="true"') === 1, `sign-ups with a partner: ${count.get('attributed="true"')}`)
  expect(person.browser.named(cookieName(world, 'attribution')).length === 0, 'the partner is remembered')
}

const cookieName = ({ settings }: RowWorld, name: string): string =>
  settings['DEV_INSECURE_COOKIES'] ? name : `__Host-${name}`

const calls: Part = async (world, expect) => {
  const { settings, servers, seen, granted } = world
  const person = world.ann
  for (const at of servers) {
    const { json } = await person.call('GET', '/auth/session', { at })
    expect(json['authenticated'] === true, `the session is ${JSON.stringify(json)}`)
    expect((json['subject'] === undefined) === !hasSubjects(world), `the subject is ${String(json['subject'])}`)
    const claims = json['claims'] as Record<string, unknown> | undefined
    expect(claims?.['name'] === (settings['IDENTITY_CLAIMS'] ? 'ann the user' : undefined), 'claims differ')
    const read = await person.call('GET', `${ACCOUNTS}?a=1`, { at })
    expect(read.status === 200, `a call gets ${told(read)}`)
    const headers = seen.at(-1)?.headers ?? {}
    expect(headers.authorization === `Bearer ${granted[0]?.access.at(-1)}`, 'another token')
    const id = headers[(settings['APP_ID_HEADER'] ?? 'Service-App-ID').toLowerCase()]
    expect(id === (settings['SERVICE_APP_ID'] ?? 'test-client'), `the id of the application is ${String(id)}`)
    expect(headers.cookie === undefined, 'a cookie goes upstream')
  }
}

const left: Part = async (world, expect) => {
  const { settings, servers, collector, problems } = world
  for (const problem of problems) expect(false, problem)
  for (const { opsUrl, log } of servers) {
    const text = await (await fetch(`${opsUrl}/metrics`)).text()
    expect(/^bff_/m.test(text), 'no metrics')
    for (const line of log.filter(({ level }) => Number(level) >= ERROR))
      expect(false, `the log says ${JSON.stringify(line).slice(0, 200)}`)
    expect(settings['LOG_LEVEL'] !== 'silent' || log.length === 0, `a silent log has ${log.length} lines`)
    const hasNames = log.some((line) => line['subject'] === 'ann')
    expect(!hasNames || settings['LOG_SUBJECT'] === 'plain', 'the log has the name of a user')
  }
  if (world.redis !== undefined) {
    const store = await world.storeClient()
    for (const key of await store.keys('*')) {
      const ms = await store.pTTL(key)
      expect(ms > 0 || ms === -2, `${key} has no end`)
    }
  }
  const isTraced = Object.keys(settings).some((name) => name.startsWith('OTEL_')) && !settings['OTEL_TRACES_SAMPLER']
  if (isTraced) await until(() => collector.requests.length > 0, 'traces arrive')
  else expect(collector.requests.length === 0, 'traces arrive')
}

/** What visitors, two users and an operator live through, one after the other. */
export const LIFE: readonly (readonly [name: string, part: Part])[] = [
  ['a visitor', visitor],
  ['a partner', partner],
  ['calls', calls],
  ['orders', orders],
  ['trading sockets', trading],
  ['market data', market],
  ['the operator', operator],
  ['renewal', renewal],
  ['ends', ends],
  ['what is left', left],
]
