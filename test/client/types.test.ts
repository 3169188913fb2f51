import { readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { compile } from '../../client/build.ts'
import type {
  Account,
  Agent,
  ApiError,
  AuthErrorCode,
  ApiInit,
  Client,
  ClientOptions,
  CloseReason,
  ExistingAccount,
  LoginOptions,
  LogoutOptions,
  NewAccount,
  OnceOptions,
  ProblemCode,
  PublicSocket,
  RequestOptions,
  ResponseBody,
  SeriesOptions,
} from '../../client/dist/client.js'
import type { FateOptions } from '../../client/dist/client/orders.js'
import type { OwnSessionsOptions } from '../../client/dist/client/sessions.js'
import type { FakeOptions } from '../../client/dist/testing.js'
import type { AuthError } from '../../src/login/return-to.ts'
import { PROBLEM_CODES, type ProblemCode as ServerCode } from '../../src/problem.ts'

const CLIENT = new URL('../../client/', import.meta.url).pathname

/** What the page around a sample in the README would declare. */
const PAGE = `
declare const client: import('trading-bff-client').Client
declare const createClient: typeof import('trading-bff-client').createClient
declare const request: Request
declare const settings: { bffUrl: string }
declare const ApiError: typeof import('trading-bff-client').ApiError
declare const SocketError: typeof import('trading-bff-client').SocketError
declare const market: import('trading-bff-client').PublicSocket
declare const trading: import('trading-bff-client').TradingSocket
declare const link: HTMLAnchorElement
declare const button: HTMLButtonElement
declare const order: import('trading-bff-client').TransferRequest
declare const once: typeof import('trading-bff-client').once
declare const error: import('trading-bff-client').SocketError
declare function transfer(idempotencyKey: string): Promise<unknown>
declare function showFate(error: import('trading-bff-client').SocketError): Promise<void>
declare function showCandidates(contracts: readonly { contract_id: number | string }[]): void
declare const proposal: { id: string; ask_price: number }
declare function forgetTheUser(): void
interface Wallet { wallet_id: string }
declare function showAccount(scope: string, until: Date): void
declare function showLogin(reason?: string): void
declare function showSession(text: string, end?: () => Promise<void>): void
declare function showLink(text: string, url: string): void
declare function showMessage(text: string): void
declare function showConnection(status: import('trading-bff-client').SocketStatus): void
declare const contract: { date_expiry: number; contract_id: number | string }
declare function showTimeLeft(ms: number): void
declare function showContract(id: number | string): void
declare function showOpenContracts(): Promise<void>
declare function draw(quote: number): void
declare function drawCandles(candles: readonly import('trading-bff-client').CandlePoint[]): void
interface ImportMeta {
  env: { DEV: boolean }
  hot?: { accept(callback: () => void): void; dispose(callback: () => void): void; invalidate(): void }
}
declare module 'react' {
  export function useEffect(effect: () => () => void, of: unknown[]): void
  export function useState<S>(first: S): [S, (next: S) => void]
}
declare namespace JSX {
  interface IntrinsicElements {
    p: { key?: string; className?: string; children?: unknown }
    a: { href: string; children?: unknown }
    button: { disabled?: boolean; onClick: () => unknown; children?: unknown }
  }
}
`

declare module '../../client/dist/client.js' {
  interface MorePaths {
    GET: '/partners/analytics/v1/overview'
  }
}

type IsAny<A> = 0 extends 1 & A ? true : false
type Equal<A, B> = [IsAny<A>, A] extends [false, B] ? ([B] extends [A] ? true : false) : false

/** Whether a page may pass undefined in place of leaving an option out, also under `exactOptionalPropertyTypes`. */
type TakesUndefined<T> = { [K in keyof T]: T[K] | (object extends Pick<T, K> ? undefined : never) } extends T
  ? true
  : false

/** A message that an application has declared. */
interface TicksRequest {
  ticks: string
}

/** The compiler checks this function. Nothing calls it. */
export async function typed({ api, session }: Client, socket: PublicSocket, ticks: TicksRequest): Promise<unknown> {
  socket.subscribe(ticks, () => undefined)
  await socket.request(ticks, { signal: undefined, timeoutMs: undefined })
  await api('/trading/v1/options/accounts', { timeoutMs: undefined })
  await api('/trading/v1/options/accounts')
  await api('/trading/v1/options/accounts?page=2', { timeoutMs: 1000 })
  await api('/partners/analytics/v1/overview?start_date=2026-01-01&end_date=2026-01-31')
  await api('/trading/v1/options/contracts/bulk-purchase/demo', { method: 'POST', body: '{}' })
  // @ts-expect-error this path does not exist
  await api('/trading/v2/options/accounts')
  // @ts-expect-error this kind of account does not exist
  await api('/trading/v1/options/contracts/bulk-purchase/other', { method: 'POST' })
  // @ts-expect-error wallets have no POST
  await api('/wallet/v1/wallets', { method: 'POST' })
  // @ts-expect-error a transfer without an id has no GET
  await api('/payment-agents/v1/transfer')
  const listed = await (await api('/trading/v1/options/accounts?page=2')).json()
  const opened = await (await api('/trading/v1/options/accounts', { method: 'POST', body: '{}' })).json()
  const [account] = listed.data
  const agents = await (await api('/payment-agents/v1/agents')).json()
  const bodies: [
    Equal<Account['account_id'], string>,
    Equal<(typeof listed.data)[number], Account>,
    Equal<Account['account_type' | 'currency'], string | undefined>,
    Equal<Account['nothing'], unknown>,
    Equal<(typeof agents.data)[number], Agent>,
    Equal<ResponseBody<'GET', '/payment-agents/v1/agents/${string}'>['data'], Agent>,
    Equal<NonNullable<ApiError['problem']>['code'], ProblemCode | (string & {})>,
    Equal<(typeof listed.data)[number]['balance'], number | string | undefined>,
    Equal<typeof opened, ExistingAccount | NewAccount>,
    Equal<ResponseBody<'GET', '/wallet/v1/transactions/main?page=2'>['data'], unknown>,
    Equal<ResponseBody<'GET', '/v1/health'>, never>,
    Equal<ResponseBody<'GET', '/partners/analytics/v1/overview'>, unknown>,
  ] = [true, true, true, true, true, true, true, true, true, true, true, true]
  const options: [
    TakesUndefined<
      Pick<ApiInit<'POST', '/trading/v1/options/accounts'>, 'idempotencyKey' | 'json' | 'signal' | 'timeoutMs'>
    >,
    TakesUndefined<Pick<ClientOptions, 'baseUrl' | 'debug'>>,
    TakesUndefined<FakeOptions>,
    TakesUndefined<NonNullable<FakeOptions['session']>>,
    TakesUndefined<FateOptions>,
    TakesUndefined<LoginOptions>,
    TakesUndefined<LogoutOptions>,
    TakesUndefined<OnceOptions>,
    TakesUndefined<OwnSessionsOptions>,
    TakesUndefined<RequestOptions>,
    TakesUndefined<SeriesOptions<'candles'>>,
  ] = [true, true, true, true, true, true, true, true, true, true, true]
  const own = await (await api('/account/v1/nickname')).json<{ data: { nickname: string } }>()
  // @ts-expect-error an envelope has no such field
  const nothing: unknown = listed.accounts
  const state = session.get()
  // @ts-expect-error only an active session has a scope
  if (state.status !== 'active') return state.scope
  const codes: [Equal<ProblemCode, ServerCode>, Equal<AuthErrorCode, AuthError>] = [true, true]
  const reason: CloseReason = 'slow_consumer'
  return [state.scope, codes, reason, bodies, options, own.data.nickname, nothing, account?.account_id]
}

await test('the types of the package match those of the server', (t) => {
  const code: ProblemCode | undefined = PROBLEM_CODES[0]
  t.ok(code)
  t.end()
})

await test('the samples in the README and the guide compile', async (t) => {
  const dir = t.testdir({ node_modules: {}, 'package.json': '{"type":"module"}', 'page.d.ts': PAGE })
  await symlink(CLIENT, join(dir, 'node_modules/trading-bff-client'))
  const texts = ['README.md', 'docs/guide.md'].map((name) => readFile(join(CLIENT, name), 'utf8'))
  const samples = [...(await Promise.all(texts)).join('\n').matchAll(/```(tsx?)\n(.*?)```/gs)]
  const files = ['page.d.ts']
  for (const [, kind = '', code = ''] of samples) {
    // Vitest runs this one (test/frontends/page-tests.test.ts).
    if (code.includes(`from 'vitest'`)) continue
    const file = `sample-${files.length}.${kind}`
    files.push(file)
    await writeFile(join(dir, file), `${code}\nexport {}\n`)
  }
  t.ok(files.length > 10)
  const options =
    '--ignoreConfig --strict --exactOptionalPropertyTypes --noEmit --jsx preserve --target es2022 --lib es2022,dom,dom.iterable'
  const modules = '--module esnext --moduleResolution bundler --moduleDetection force --types'
  await t.resolves(compile([...`${options} ${modules}`.split(' '), '', ...files], dir))
})
