import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { PROBLEM_CODES } from '../../src/problem.ts'
import { apiWorld, type ApiWorld } from '../support/api-world.ts'
import { ok } from '../support/raw-upstream.ts'

const [, section = ''] =
  /^## Calling the API\n(.*?)(?=^## |$(?![^]))/ms.exec(
    readFileSync(new URL('../../docs/frontends.md', import.meta.url), 'utf8'),
  ) ?? []

/** The functions that the examples define. */
interface Examples {
  readonly api: (path: string, options?: object) => Promise<Response>
  readonly listAccounts: () => Promise<unknown>
  readonly transfer: (order: object, isMade: (order: object) => string) => Promise<unknown>
}

const look = (): string => 'looked'
const failure = (call: Promise<unknown>): Promise<unknown> => call.catch((error: unknown) => error)

function examplesIn({ world }: ApiWorld): Examples {
  const source = [...section.matchAll(/^```js\n(.*?)^```/gms)].map(([, code]) => code).join('\n')
  // oxlint-disable-next-line typescript/no-implied-eval -- this is how documentation is proved to run
  const run = new Function('fetch', `${source}\nreturn { api, listAccounts, transfer }`) as (fetch: unknown) => Examples
  return run((path: string, init: object) => world.browser.fetch(path, init))
}

await test('the examples of "Calling the API" in docs/frontends.md run', async (t) => {
  const world = await apiWorld(t)
  const { upstream } = world
  const { api, listAccounts, transfer } = examplesIn(world)
  upstream.answer = (_request, socket) => void socket.write(ok('{"data":[1]}'))
  t.same(await listAccounts(), { data: [1] })
  t.equal(upstream.requests[0]?.target, '/trading/v1/options/accounts')

  const made = { data: 'made' }
  upstream.answer = (_request, socket) => void socket.write(ok(JSON.stringify(made)))
  t.same(await transfer({ amount: 1 }, look), made)
  t.equal(upstream.requests[1]?.body, '{"amount":1}')
  t.equal(upstream.header('content-type'), 'application/json')

  upstream.answer = (_request, socket) => socket.resetAndDestroy()
  t.equal(await transfer({ amount: 1 }, look), 'looked')
  upstream.answer = (_request, socket) => void socket.write('HTTP/1.1 503 Oh\r\nContent-Length: 0\r\n\r\n')
  t.equal(await transfer({ amount: 1 }, look), 'looked')
  upstream.answer = (_request, socket) => void socket.write('HTTP/1.1 422 No\r\nContent-Length: 2\r\n\r\n{}')
  t.match(await failure(transfer({ amount: 1 }, look)), { response: { status: 422 }, problem: undefined })
  const unknown = await failure(api('/nothing'))
  t.match(unknown, { message: 'GET /nothing: not_found', problem: { code: 'not_found' } })
  const refused = await failure(api('/v1/health', { headers: { 'X-CSRF': '0' } }))
  t.match(refused, { problem: { code: 'csrf_rejected' } })
})

await test('"Calling the API" in docs/frontends.md lists every problem code of a call', (t) => {
  const documented = new Set([...section.matchAll(/^\| \w+ \| `(\w+)` \|/gm)].map(([, code]) => code))
  const elsewhere = new Set(['origin_rejected', 'navigation_required'])
  for (const code of PROBLEM_CODES) t.equal(documented.has(code), !elsewhere.has(code), code)
  t.end()
})
