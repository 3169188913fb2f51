import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { settingRules } from '../../src/config/settings.ts'
import { PROBLEM_CODES } from '../../src/problem.ts'
import { CLOSE } from '../../src/sockets/close-codes.ts'

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const [, CHAPTER = ''] = /^## All limits\n([^]*?)^## /m.exec(read('docs/reference.md')) ?? []

/** A row of the table. */
interface Limit {
  readonly what: string
  readonly setting: string
  readonly fallback: string
  readonly of: string
  readonly counted: string
  readonly beyond: string
}

const LIMITS: readonly Limit[] = [
  ...CHAPTER.matchAll(/^\| (?!What is|---|\*\*)(.+) \| (.*?) ?\| (.+) \| (.+) \| (.*?) ?\| (.+) \|$/gm),
].map(([, what = '', setting = '', fallback = '', of = '', counted = '', beyond = '']) => {
  return { what, setting: setting.replaceAll('`', ''), fallback, of, counted, beyond }
})

/** Numbers that refuse, close, drop or end nothing, however small they are. A new one has its row in the table, or its name here. */
const NO_LIMITS = new Set([
  'PORT',
  'OPS_PORT',
  'DRAIN_WAIT_SECONDS',
  'TOKEN_FALLBACK_SECONDS',
  'HEALTH_SECONDS',
  'UPSTREAM_MAX_CONNECTION_SECONDS',
  'UPSTREAM_BUDGET_INSTANCES',
  'IDEMPOTENCY_REPLICAS',
  'FEED_CACHE_SECONDS',
  'FEED_LINGER_SECONDS',
  'FEED_RECONNECT_SPREAD_SECONDS',
  'OTEL_EXPORTER_OTLP_TIMEOUT',
  'OTEL_EXPORTER_OTLP_TRACES_TIMEOUT',
  'OTEL_BSP_SCHEDULE_DELAY',
  'OTEL_BSP_EXPORT_TIMEOUT',
  'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
])

/** The fixed limits: the beginning of the row, and the constants that stand in its default, in this order. */
const FIXED: readonly (readonly [what: string, file: string, ...constants: string[]])[] = [
  ['requests for the health', 'proxy/shared-responses.ts', 'MAX_WAITING'],
  ['time until the headers', 'http/server.ts', 'HEADERS_TIMEOUT_MS'],
  ['time until the whole request', 'http/server.ts', 'REQUEST_TIMEOUT_MS'],
  ['requests that wait on one connection', 'http/http-socket.ts', 'MAX_PENDING', 'MAX_IN_TURN'],
  ['time that a connection', 'http/server.ts', 'KEEP_ALIVE_MS'],
  ['query', 'proxy/catalog-routes.ts', 'MAX_QUERY_BYTES'],
  ['time in which 16 KiB', 'upstream/request-body.ts', 'WINDOW_MS'],
  ['logins that have begun', 'login/login-cookies.ts', 'MAX_PER_BROWSER'],
  ['`return_to`', 'login/return-to.ts', 'MAX_LENGTH'],
  ['authorization requests', 'oauth/authorization-requests.ts', 'MAX_PUSHES'],
  ['token renewals', 'oauth/provider.ts', 'MAX_REFRESHES'],
  ['sessions in a list', 'sessions/own-sessions.ts', 'MAX_LISTED'],
  ['lists of own sessions', 'sessions/own-sessions.ts', 'MAX_LISTINGS_PER_MINUTE'],
  ['ends of own sessions', 'sessions/own-sessions.ts', 'MAX_ENDS_PER_MINUTE'],
  ['logout tokens in a second', 'login/logout-senders.ts', 'MAX_FALSE', 'MAX_FALSE_KNOWN'],
  ['signatures of logout tokens', 'login/logout-senders.ts', 'MAX_CHECKS'],
  ['logout tokens that are checked', 'login/logout-senders.ts', 'MAX_WAITING'],
  ['calls at once |', 'proxy/proxy.ts', 'MAX_CALLS'],
  ['calls at once with', 'proxy/proxy.ts', 'MAX_UPLOADS'],
  ['calls that wait for the budget', 'upstream/budget/waiting-line.ts', 'MAX_WAITING'],
  ['the same of one user', 'upstream/budget/waiting-line.ts', 'MAX_WAITING_OF_SUBJECT'],
  ['calls that wait for a connection', 'upstream/rest-client.ts', 'MAX_WAITING'],
  ['addresses of a peer', 'peers/dialing.ts', 'MAX_BESIDE'],
  ['headers of upstream', 'upstream/rest-client.ts', 'MAX_HEADER_BYTES'],
  ['time to open upstream', 'sockets/upstream-socket.ts', 'OPEN_MS'],
  ['messages to the session socket', 'sockets/session/session-socket.ts', 'MAX_MESSAGES'],
  ['messages of a browser in a second', 'sockets/feed/browser/member.ts', 'MESSAGES_PER_SECOND'],
  ['request that can be shared', 'sockets/feed/wire/parse-request.ts', 'MAX_REQUEST_BYTES'],
  ['body of `/controls`', 'ops/controls-routes.ts', 'MAX_BODY_BYTES', 'MAX_CHARACTERS'],
  ['subjects whose orders', 'ops/controls-admin.ts', 'MAX_SUBJECTS'],
  ['bytes of log lines', 'telemetry/log-writer.ts', 'MAX_WAITING_BYTES'],
]

const grouped = (count: number): string => count.toLocaleString('en-US')

/** A number as the table writes it, with the unit that its name ends with. */
function written(name: string, value: number): string {
  if (name.endsWith('_MS')) return `${grouped(value / 1000)} s`
  if (name.endsWith('_SECONDS')) return `${grouped(value)} s`
  if (!name.endsWith('_BYTES')) return grouped(value)
  return value % 1_048_576 === 0 ? `${grouped(value / 1_048_576)} MiB` : `${grouped(value / 1024)} KiB`
}

/** The value of a constant of a source file, such as `16 * 1_048_576`. */
function constant(file: string, name: string): number {
  const [, text = ''] = new RegExp(`^(?:export )?const ${name} = ([\\d_ *]+)$`, 'm').exec(read(`src/${file}`)) ?? []
  return text.split('*').reduce((product, factor) => product * Number(factor.trim().replaceAll('_', '') || NaN), 1)
}

await test('Every setting that is a number is a limit with its default in reference.md, or is none', (t) => {
  const numbers = Object.values(settingRules).filter(({ format }) => format.range !== undefined)
  t.ok(numbers.length > 40)
  const listed = LIMITS.flatMap(({ setting }) => (setting === '' ? [] : [setting]))
  t.equal(new Set(listed).size, listed.length, 'no setting is listed twice')
  for (const { name, default: fallback } of numbers) {
    const row = LIMITS.find(({ setting }) => setting === name)
    t.equal(row === undefined, NO_LIMITS.has(name), name)
    if (row === undefined || fallback === undefined) continue
    t.match(`${row.fallback} `, `${written(name, Number(fallback))} `, name)
  }
  for (const setting of listed) t.ok(settingRules[setting] !== undefined, setting)
  for (const name of NO_LIMITS) t.ok(settingRules[name] !== undefined, name)
  t.end()
})

await test('The fixed limits of reference.md are those of the code', (t) => {
  for (const [what, file, ...names] of FIXED) {
    const rows = LIMITS.filter((row) => `${row.what} |`.startsWith(what))
    t.equal(rows.length, 1, `${what}: one row`)
    const [row] = rows
    t.equal(row?.setting, '', what)
    const values = names.map((name) => written(name, constant(file, name)))
    t.equal(row?.fallback.replace(' characters', ''), values.join('; '), what)
  }
  t.end()
})

await test('The table of limits says of each who has it, where it is counted, and with which code it ends', (t) => {
  t.ok(LIMITS.length > 65)
  const others = ['try_later', 'state_mismatch', 'RateLimit', '/', '/readyz']
  const codes = new Set<string>([...PROBLEM_CODES, ...Object.values(CLOSE).map(({ reason }) => reason), ...others])
  for (const { what, of, counted, beyond } of LIMITS) {
    t.match(
      of,
      /^(?:process|address|browser|(?:browser|user); address|session|subject|user|all|class of calls|(?:trading |upstream )?socket|connection|request|call|login|message)$/,
      what,
    )
    t.match(counted, /^(?:|process|Redis|its cookies?)$/, what)
    for (const [, code = ''] of beyond.matchAll(/`([^`]+)`/g)) t.ok(codes.has(code), code)
    for (const [, code = ''] of beyond.matchAll(/`(\w+)`/g)) {
      const closes = Object.values(CLOSE).filter(({ reason }) => reason === code)
      const [, written = ''] = new RegExp(`\\b(1\\d{3}|4\\d{3}) \`${code}\``).exec(beyond) ?? []
      if (written !== '')
        t.ok(
          closes.some((close) => String(close.code) === written),
          `${what}: ${written} ${code}`,
        )
    }
  }
  t.end()
})
