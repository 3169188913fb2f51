import type { CustomFetch } from 'openid-client'
import { Agent, fetch as undiciFetch } from 'undici'
import { isOutOfDescriptors } from '../telemetry/descriptors.ts'
import { UnusableResponse, type RawResponse } from './provider-response.ts'

/** Timeout of a request to the provider, including the response body. */
export const PROVIDER_TIMEOUT_MS = 9_000

/** The kind of a request to the provider; a metrics label. */
export type ProviderRequest = 'push' | 'exchange' | 'refresh' | 'revoke'

/** A metrics label. `busy`: a 429; `refused`: any other 4xx; `failed`: a 5xx, a redirect or an unusable body. */
type ProviderOutcome = 'ok' | 'refused' | 'busy' | 'failed' | 'timeout' | 'unreachable' | 'no_descriptor'

/** Notified of every request to the provider, once it is over. */
export interface ProviderObserver {
  asked(request: ProviderRequest, outcome: ProviderOutcome, seconds: number): void
}

/** Reads a response and normalizes it for openid-client. @throws UnusableResponse */
export type ResponseReader = (response: RawResponse) => Promise<Response>

/** The connections to the provider. */
export class ProviderTraffic {
  readonly #observer: ProviderObserver | undefined
  readonly #agent = new Agent({
    headersTimeout: PROVIDER_TIMEOUT_MS,
    bodyTimeout: PROVIDER_TIMEOUT_MS,
    connect: { timeout: 3000 },
    // One connection per request: a login would be lost on a reused connection that the provider is just closing.
    pipelining: 0,
  })

  constructor(observer?: ProviderObserver) {
    this.#observer = observer
  }

  /** A fetch() for openid-client whose requests are counted under this name. It follows no redirect. */
  fetchFor(request: ProviderRequest, read: ResponseReader): CustomFetch {
    return async (url, options: object) => {
      const sentAt = performance.now()
      let outcome: ProviderOutcome = 'failed'
      try {
        // Node's own fetch does not accept a dispatcher of another undici version.
        const response = await undiciFetch(url, { ...options, dispatcher: this.#agent })
        outcome = outcomeOf(response)
        return await read(response)
      } catch (error) {
        outcome = failureOf(error)
        throw error
      } finally {
        this.#observer?.asked(request, outcome, (performance.now() - sentAt) / 1000)
      }
    }
  }

  /** Closes all connections, including those in use. */
  close(): Promise<void> {
    return this.#agent.destroy()
  }
}

function outcomeOf({ status }: { readonly status: number }): ProviderOutcome {
  if (status === 429) return 'busy'
  if (status >= 400 && status < 500) return 'refused'
  return status >= 200 && status < 300 ? 'ok' : 'failed'
}

function failureOf(error: unknown): ProviderOutcome {
  if (isOutOfDescriptors(error)) return 'no_descriptor'
  if (error instanceof UnusableResponse) return error.busyForMs !== undefined ? 'busy' : 'failed'
  // A timeout of openid-client (AbortSignal.timeout) or of undici.
  const { name, cause } = error as { name?: string; cause?: { code?: string } }
  const isTimeout = name === 'TimeoutError' || /^UND_ERR_\w+_TIMEOUT$/.test(cause?.code ?? '')
  return isTimeout ? 'timeout' : 'unreachable'
}
