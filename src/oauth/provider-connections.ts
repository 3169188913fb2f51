import { fetch as undiciFetch, type Agent, type Dispatcher } from 'undici'
import { connector } from '../peers/dialing.ts'
import { judgeAfter } from '../time/judge-after.ts'
import { standstill } from '../time/standstill.ts'
import { oneUseAgent } from '../upstream/response-heads.ts'
import { UnusableResponse } from './provider-response.ts'

const CONNECT_MS = 3000
/** After this response, and no other, fetch() sends a request once more by itself (Fetch standard, HTTP-network-or-cache fetch). */
const MISDIRECTED = 421

/**
 * The connections to the provider. Each request has one of its own, TLS or not: a login would be lost on one that the
 * provider is just closing, and all logins on one that the network has forgotten.
 */
export class ProviderConnections {
  readonly #agent: Agent

  /** @param address of the provider: its name is looked up while those of other hosts, such as that of the keys, have to wait */
  constructor(address: string | URL) {
    const { hostname } = new URL(address)
    const peerOf = (host: string) => (host === hostname ? 'provider' : 'other')
    this.#agent = oneUseAgent(connector(peerOf, { timeoutMs: CONNECT_MS }))
  }

  /**
   * Like fetch(), but the request is sent once, whatever the response, and not at all once its time is over: a token would be used
   * up for nothing, by then perhaps a second time. (Node's own fetch() takes no connections of another
   * version of undici.)
   * @param timeoutMs including the response body
   * @throws UnusableResponse after a 421; what undici throws if there is no response
   */
  async fetch(url: string | URL, options: object, timeoutMs: number): ReturnType<typeof undiciFetch> {
    let isSent = false
    const endsAt = standstill.now() + timeoutMs
    const once: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (request, handler) => {
      if (isSent) throw new UnusableResponse(`status ${MISDIRECTED}`, MISDIRECTED)
      isSent = true
      const start = handler.onRequestStart?.bind(handler)
      // After a standstill, a connection that has opened meanwhile is written to before any timer is heard.
      const onRequestStart: typeof start = (controller, context) => {
        start?.(controller, context)
        if (standstill.now() >= endsAt) controller.abort(tooLate())
      }
      return dispatch(request, Object.assign(handler, { onRequestStart }))
    }
    try {
      return await undiciFetch(url, { ...options, signal: timeLimit(timeoutMs), dispatcher: this.#agent.compose(once) })
    } catch (error) {
      // What was thrown or aborted above is the cause of what fetch() throws.
      const { cause } = error as Error
      throw cause instanceof UnusableResponse || cause instanceof DOMException ? cause : error
    }
  }

  /** Closes all connections, including those in use. */
  close(): Promise<void> {
    return this.#agent.destroy()
  }
}

/** Fetches a response of which only status and headers matter. It follows no redirect. */
export async function fetchHead(url: string | URL, timeoutMs: number, headers = {}): ReturnType<typeof undiciFetch> {
  const connections = new ProviderConnections(url)
  try {
    return await connections.fetch(url, { headers, redirect: 'manual' }, timeoutMs)
  } finally {
    await connections.close()
  }
}

/** Like AbortSignal.timeout(), but a response that has arrived while this process stood still is read before. */
function timeLimit(ms: number): AbortSignal {
  const controller = new AbortController()
  judgeAfter(ms, () => controller.abort(tooLate()), false)
  return controller.signal
}

const tooLate = (): Error => new DOMException('the provider did not respond in time', 'TimeoutError')
