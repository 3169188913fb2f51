import { Agent, fetch as undiciFetch } from 'undici'
import type { ProviderConfig } from '../config/provider.ts'
import { isIssuer } from './client-configuration.ts'
import { boundedText, parsedObject, UnusableResponse } from './provider-response.ts'
import { PROVIDER_TIMEOUT_MS } from './provider-traffic.ts'

const MAX_SHOWN = 200
/** Statuses that will pass: a timeout, too many requests, and all of 5xx. */
const isTemporary = (status: number): boolean => status === 408 || status === 429 || status >= 500

/** The response is not the issuer's metadata. The message completes a sentence that starts with “ISSUER”. */
export class DocumentFault extends Error {
  /** Whether the metadata may be at another address of the issuer. The message is then a sentence of its own. */
  readonly isElsewhere: boolean

  constructor(message: string, isElsewhere = false) {
    super(message)
    this.name = 'DocumentFault'
    this.isElsewhere = isElsewhere
  }
}

/** Fetches the issuer's metadata for openid-client, bounded in size and without following redirects. */
export class MetadataRequests {
  readonly #config: ProviderConfig
  readonly #agent = new Agent({
    headersTimeout: PROVIDER_TIMEOUT_MS,
    bodyTimeout: PROVIDER_TIMEOUT_MS,
    connect: { timeout: 3000 },
  })

  constructor(config: ProviderConfig) {
    this.#config = config
  }

  /**
   * A fetch() for openid-client.
   * @throws DocumentFault; UnusableResponse if another attempt may succeed; what undici throws if there is no response
   */
  async fetch(url: string, options: object): Promise<Response> {
    const response = await undiciFetch(url, { ...options, dispatcher: this.#agent })
    const { status } = response
    if (status !== 200) {
      await response.body?.cancel()
      if (isTemporary(status)) throw new UnusableResponse(`status ${status}`, status)
      const isRedirect = status >= 300 && status < 400
      throw new DocumentFault(`${url} ${isRedirect ? 'is redirected, with' : 'has'} status ${status}`, true)
    }
    const text = await boundedText(response).catch((error: unknown) => {
      if (error instanceof UnusableResponse) throw new DocumentFault(`has metadata that is too large at ${url}`)
      throw error
    })
    const document = parsedObject(text)
    if (document === undefined) throw new DocumentFault(`${url} is not a JSON object`, true)
    this.#checkIssuer(document['issuer'])
    return Response.json(document)
  }

  close(): Promise<void> {
    return this.#agent.destroy()
  }

  /**
   * To the letter (RFC 8414 §3.3), unlike openid-client. Only AUTH_URL, which has lost its final slash, may differ by that.
   */
  #checkIssuer(found: unknown): void {
    if (isIssuer(this.#config, found)) return
    const { issuer } = this.#config
    const shown = typeof found === 'string' ? JSON.stringify(found.slice(0, MAX_SHOWN)) : 'none'
    throw new DocumentFault(
      `must be the issuer that the metadata names, to the letter: it is ${issuer}, and the metadata names ${shown}`,
    )
  }
}
