import { buildConnector, fetch as undiciFetch, type Dispatcher } from 'undici'
import { oneUseAgent } from '../upstream/response-heads.ts'
import { UnusableResponse } from './provider-response.ts'

const CONNECT_MS = 3000
/** The response after which fetch() sends a request again by itself, in the Fetch standard alone. */
const MISDIRECTED = 421

/** What {@link ProviderConnections.fetch} resolves with. */
export type ProviderResponse = Awaited<ReturnType<typeof undiciFetch>>

/**
 * The connections to the provider. Each request has one of its own, TLS or not: a login would be lost on one that the
 * provider is just closing, and all logins on one that the network has forgotten.
 */
export class ProviderConnections {
  readonly #agent = oneUseAgent(buildConnector({ timeout: CONNECT_MS, allowH2: false }))

  /**
   * Like fetch(), which neither Node's own nor another undici version can do with these connections; but the request is
   * sent once, whatever the response.
   * @throws UnusableResponse after a 421; what undici throws if there is no response
   */
  async fetch(url: string | URL, options: object): Promise<ProviderResponse> {
    let isSent = false
    const once: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (request, handler) => {
      if (isSent) throw new UnusableResponse(`status ${MISDIRECTED}`, MISDIRECTED)
      isSent = true
      return dispatch(request, handler)
    }
    try {
      return await undiciFetch(url, { ...options, dispatcher: this.#agent.compose(once) })
    } catch (error) {
      const { cause } = error as Error
      throw cause instanceof UnusableResponse ? cause : error
    }
  }

  /** Closes all connections, including those in use. */
  close(): Promise<void> {
    return this.#agent.destroy()
  }
}

/** Fetches a response of which only status and headers matter. It follows no redirect. */
export async function fetchHead(url: string | URL, options: object): Promise<ProviderResponse> {
  const connections = new ProviderConnections()
  try {
    return await connections.fetch(url, { ...options, redirect: 'manual' })
  } finally {
    await connections.close()
  }
}
