import * as fc from 'fast-check'
import { test } from 'tap'
import { catalog } from '../../src/proxy/catalog.ts'
import { REQUEST_HEADERS } from '../../src/upstream/headers.ts'
import { CLIENT_ID } from '../support/server/test-server.ts'
import { startWorld, API } from '../support/world.ts'

const OVERVIEW = '/partners/analytics/v1/overview'
const RUNS = { numRuns: 300 }

/** Every path that may ever arrive upstream. */
const PATHS = catalog(OVERVIEW).map(({ method, path, parameters }) => {
  const source = path.replaceAll(
    /:(\w+)/g,
    (_all, name: string) => parameters?.[name]?.source.slice(1, -1) ?? '[A-Za-z0-9_-]{1,64}',
  )
  return { method, pattern: new RegExp(`^${source}(\\?[\\x21\\x22\\x24-\\x7e]*)?$`) }
})
const HEADERS = new Set<string>([
  ...REQUEST_HEADERS,
  ...['host', 'connection', 'user-agent', 'x-request-id', 'service-app-id', 'authorization'],
  ...['content-length', 'transfer-encoding'],
])

const byte = fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code))
const bytes = fc.string({ unit: byte, maxLength: 40 })
/** Valid and invalid ids. */
const id = fc.oneof(
  fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/),
  bytes,
  fc.string({ unit: 'binary' }).map((text) => encodeURIComponent(text.toWellFormed())),
  fc.constantFrom('..', '.', '%2e%2e', '%2f', '%5c', '', 'a/b', 'otp', '%00', 'a%0d%0aX: y', 'a?b', 'a#b', 'a;b'),
)
const query = fc.option(fc.oneof(bytes, fc.webQueryParameters(), fc.stringMatching(/^[!-~]{0,40}$/)), {
  nil: undefined,
})
const otp = { method: 'POST', path: '/trading/v1/options/accounts/:id/otp' } as const
/** The usual value six times out of seven. */
const mostly = <Value>(usual: Value, other: fc.Arbitrary<Value>): fc.Arbitrary<Value> =>
  fc.oneof({ weight: 6, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: other })
/** A method and a target, mostly of an endpoint with any id. */
const line = fc
  .tuple(fc.constantFrom(...catalog(OVERVIEW), otp), id, query, mostly('', bytes))
  .chain(([{ method, path }, value, query, more]) => {
    const target = path.replaceAll(/:\w+/g, () => value)
    const search = query === undefined ? '' : `?${query}`
    return fc.tuple(
      mostly<string>(method, fc.constantFrom('GET', 'POST', 'PATCH', 'HEAD', 'PUT', 'DELETE', 'get')),
      mostly(`/api${target}${more}${search}`, fc.constant(`/${more}${target}${search}`)),
    )
  })
const headerName = fc.oneof(
  fc.constantFrom(...REQUEST_HEADERS, 'authorization', 'Authorization', 'cookie', 'Service-App-ID', 'X-CSRF'),
  fc.constantFrom('connection', 'transfer-encoding', 'content-length', 'host', 'origin', 'te', 'upgrade', 'expect'),
  fc.stringMatching(/^[A-Za-z0-9-]{1,12}$/),
)
const header = fc.tuple(
  headerName,
  fc.oneof(bytes, fc.constantFrom('authorization', 'close', 'chunked', '0', '5', 'Bearer mine')),
)

await test('upstream receives only requests of the catalog with at most one bearer, whatever a browser sends', async (t) => {
  const { raw, upstream, cookie, provider } = await startWorld(t, API)
  const tokens = new Set(provider.issued)
  let arrived = 0

  const check = (): boolean => {
    const { requests } = upstream
    arrived += requests.length
    return requests.every(({ method, target, headers }) => {
      const isKnown = PATHS.some((each) => each.method === method && each.pattern.test(target))
      const names = headers.map(([name]) => name)
      const bearers = headers.filter(([name]) => name === 'authorization').map(([, value]) => value)
      const isOpen = target.includes('/bulk-purchase/') || target.startsWith('/v1/health')
      const credentialIsRight = isOpen
        ? bearers.length === 0
        : bearers.length === 1 && tokens.has(bearers[0]?.replace('Bearer ', '') ?? '')
      const appIds = headers.filter(([name]) => name === 'service-app-id').map(([, value]) => value)
      const appIdIsRight = appIds.length === 0 ? target.startsWith('/v1/health') : appIds.join() === CLIENT_ID
      return (
        isKnown &&
        credentialIsRight &&
        appIdIsRight &&
        new Set(names).size === names.length &&
        names.every((name) => HEADERS.has(name)) &&
        headers.every(([, value]) => !value.includes(cookie.split('=')[1] ?? ' '))
      )
    })
  }
  const lines = (more: readonly (readonly [string, string])[]) =>
    ['Host: h', `Cookie: ${cookie}`, 'X-CSRF: 1', ...more.map(([name, value]) => `${name}: ${value}`)].join('\r\n')

  await t.test('for any target', async (t) => {
    await fc.assert(
      fc.asyncProperty(line, async ([method, target]) => {
        upstream.reset()
        await raw(`${method} ${target} HTTP/1.1\r\n${lines([['Connection', 'close']])}\r\n\r\n`)
        return check()
      }),
      RUNS,
    )
    t.ok(arrived > 20, `${arrived} requests arrived`)
    arrived = 0
  })

  await t.test('for any headers', async (t) => {
    const known = fc.constantFrom(
      'GET /api/trading/v1/options/accounts',
      'POST /api/trading/v1/options/accounts',
      'POST /api/trading/v1/options/contracts/bulk-purchase/real',
    )
    await fc.assert(
      fc.asyncProperty(known, fc.array(header, { maxLength: 6 }), async (line, headers) => {
        upstream.reset()
        const names = new Set(headers.map(([name]) => name))
        const body = names.has('transfer-encoding') ? '0\r\n\r\n' : names.has('content-length') ? 'hello' : ''
        await raw(`${line} HTTP/1.1\r\n${lines([...headers, ['Connection', 'close']])}\r\n\r\n${body}`)
        return check()
      }),
      RUNS,
    )
    t.ok(arrived > 20, `${arrived} requests arrived`)
  })
})
