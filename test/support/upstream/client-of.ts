import type { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import type { Test } from 'tap'
import { Pool, type Dispatcher } from 'undici'
import { readConfig } from '../../../src/config/config.ts'
import { RestClient, type ConnectionOptions, type RestRequest } from '../../../src/upstream/rest-client.ts'
import { ALONE } from '../server/settings.ts'
import { rawUpstream } from './raw-upstream.ts'

export const [CONNECT_MS, HEADERS_MS] = [7000, 11_000]
interface Options extends Partial<ConnectionOptions> {
  readonly base?: string
  readonly budget?: object
}

/** A client of an upstream that answers when a test says so, and what it had undici send. */
export async function clientOf(t: Test, { base = '', budget, connections = 1, ...options }: Options = {}) {
  const upstream = await rawUpstream(t)
  const dispatched: Dispatcher.DispatchOptions[] = []
  const dispatch = Reflect.get<Pool, 'dispatch'>(Pool.prototype, 'dispatch')
  t.intercept(Pool.prototype, 'dispatch', {
    value(this: Pool, how: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler) {
      dispatched.push(how)
      return dispatch.call(this, how, handler)
    },
  })
  const config = readConfig({
    ...ALONE,
    API_URL: upstream.url + base,
    UPSTREAM_CONNECT_SECONDS: String(CONNECT_MS / 1000),
    UPSTREAM_HEADERS_SECONDS: String(HEADERS_MS / 1000),
    UPSTREAM_BODY_SECONDS: '13',
    UPSTREAM_MAX_CONNECTION_SECONDS: '1',
  }).upstream
  const rest = new RestClient(config, { connections, ...options }, budget as never)
  t.teardown(() => rest.close())
  const held: Socket[] = []
  const hold = (): void => {
    upstream.answer = (_, socket) => void held.push(socket)
  }
  const ask = (path: string, more: Partial<RestRequest> = {}, signal?: AbortSignal) =>
    rest.exchange({ method: 'POST', path, template: path, headers: ['a', 'b'], body: null, ...more }, signal)
  const forward = (path: string, response = new PassThrough(), more: Partial<RestRequest> = {}) =>
    rest.forward(
      { method: 'GET', path, template: path, headers: [], body: null, ...more },
      {
        isSafe: true,
        response: response.resume(),
        begin: () => undefined,
        breakOff: () => response.destroy(),
        withholds: (status) => status >= 500,
        onHeadersOrFailure: () => undefined,
      },
    )
  return { upstream, rest, dispatched, held, hold, ask, forward }
}
