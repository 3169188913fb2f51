import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { compile } from '../../client/build.ts'
import { typesOf } from '../support/openapi/types.ts'
import { startWorld } from '../support/world.ts'

/** A page that uses the generated types. The compiler checks it, and the test runs it. */
const PAGE = `
import createClient from 'openapi-fetch'
import type { paths } from './api.ts'

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const same = <A, B>(_equal: Equal<A, B>): void => undefined

export async function visit(baseUrl: string, send: (request: Request) => Promise<Response>) {
  const client = createClient<paths>({ baseUrl, fetch: send, headers: { 'X-CSRF': '1' } })

  const { data: session } = await client.GET('/auth/session')
  if (session === undefined) throw new Error('no session')
  if (session.authenticated) same<typeof session.expires_at, number>(true)
  // @ts-expect-error nobody is logged in, so there is no end
  else session.expires_at

  const listed = await client.GET('/api/trading/v1/options/accounts')
  if (listed.error !== undefined) {
    if (typeof listed.error === 'string') return listed.error
    if ('code' in listed.error) {
      same<typeof listed.error.code extends string ? true : false, true>(true)
      // @ts-expect-error this call cannot get this code
      if (listed.error.code === 'upgrade_required') return listed.error.detail
      return listed.error.detail
    }
    return listed.error.errors?.[0]?.message
  }
  same<typeof listed.data.data[number]['balance'], number | string | undefined>(true)

  const opened = await client.POST('/api/trading/v1/options/accounts', { body: { account_type: 'real', currency: 'EUR', group: 'row' } })
  const made = opened.data?.data ?? []
  const accounts = Array.isArray(made) ? made : [made]

  const moved = await client.POST('/api/payment-agents/v1/transfer', {
    params: { header: { 'Idempotency-Key': 'page-1' } },
    body: { data: { to_nickname: 'somebody', amount: '1.00', currency: 'USD', request_id: 'page-1' } },
  })
  const data = { to_nickname: 'somebody', currency: 'USD' }
  // @ts-expect-error a misspelt member
  void (() => client.POST('/api/payment-agents/v1/transfer', { body: { data: { ...data, amuont: '1.00' } } }))
  // @ts-expect-error an amount is a text
  void (() => client.POST('/api/payment-agents/v1/transfer', { body: { data: { ...data, amount: 1 } } }))
  // @ts-expect-error this path does not exist
  void (() => client.GET('/api/trading/v2/options/accounts'))
  // @ts-expect-error the overview needs both dates
  void (() => client.GET('/api/partners/analytics/v1/overview', { params: { query: { start_date: '2026-01-01' } } }))

  const health = await client.GET('/api/v1/health', { parseAs: 'text' })
  same<typeof health.data, string | undefined>(true)
  const unread = await client.GET('/api/v1/health').catch((fault: unknown) => (fault instanceof SyntaxError ? 'throws' : fault))
  const empty = await client.GET('/api/payment-agents/v1/agents/{id}', { params: { path: { id: 'empty' } } })
  const { error } = await client.GET('/api/payment-agents/v1/agents/{id}', { params: { path: { id: 'nobody' } } })
  return {
    authenticated: session.authenticated,
    balances: [...listed.data.data, ...accounts].map(({ balance }) => balance),
    statuses: [listed, opened, moved].map(({ response }) => response.status),
    health: health.data,
    unread,
    empty: { hasError: empty.error !== undefined, isOk: empty.response.ok },
    refusal: typeof error === 'object' && 'errors' in error ? error.errors?.length : undefined,
  }
}
`

await test('openapi-typescript and openapi-fetch type what a page reads, and the page works', async (t) => {
  const { server, browser } = await startWorld(t, { user: 'demo' })
  const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as object
  const dir = t.testdir({ 'page.ts': PAGE })
  await writeFile(join(dir, 'api.ts'), await typesOf(document))
  const strict =
    '--ignoreConfig --strict --noUncheckedIndexedAccess --noEmit --skipLibCheck --allowImportingTsExtensions'
  const target = '--target es2022 --lib es2022,dom,dom.iterable --module esnext --moduleResolution bundler --types'
  await compile([...`${strict} ${target}`.split(' '), '', 'page.ts'], dir)

  const { visit } = (await import(join(dir, 'page.ts'))) as { visit: (...args: unknown[]) => Promise<unknown> }
  const send = async (request: Request): Promise<Response> =>
    request.url.endsWith('/empty')
      ? new Response(null, { status: 404, headers: { 'content-length': '0' } })
      : browser.fetch(request.url, {
          method: request.method,
          headers: Object.fromEntries(request.headers),
          ...(request.method !== 'GET' && { body: await request.text() }),
        })
  t.same(await visit(server.url, send), {
    authenticated: true,
    balances: [10_000, 1000, 1000],
    statuses: [200, 201, 201],
    health: 'OK',
    unread: 'throws',
    empty: { hasError: false, isOk: false },
    refusal: 1,
  })
})
