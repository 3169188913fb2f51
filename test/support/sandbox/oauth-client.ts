import { createHash } from 'node:crypto'
import { JarBrowser, type Arrival } from '../browser/jar-browser.ts'

/** The registered redirect address. Nothing listens there. */
export const REDIRECT_URI = 'http://127.0.0.1:9/auth/callback'
export const CLIENT_ID = 'test-client'
/** The form of the user that exists from the start. */
export const DEMO_USER = { email: 'demo@example.test', password: 'any', action: 'continue' }

const VERIFIER = 'a-verifier-of-at-least-forty-three-characters'
const STATE = 'state-1234'

export interface TokenAnswer {
  status: number
  body: Record<string, unknown>
  /** The access token, where there is one. */
  token: string
}

/** A browser in which nothing is fetched from the redirect address. */
export function clientBrowser(): JarBrowser {
  return new JarBrowser(new URL(REDIRECT_URI).origin)
}

/** An OAuth client reduced to its requests, for tests of the provider itself: no secrets, no checks, one verifier. */
export class TestClient {
  readonly #provider: string

  /** @param provider the provider's URL */
  constructor(provider: string) {
    this.#provider = provider
  }

  authorizationUrl(other: Readonly<Record<string, string>> = {}): string {
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: CLIENT_ID,
      redirect_uri: REDIRECT_URI,
      scope: 'trade account_manage',
      state: STATE,
      code_challenge: createHash('sha256').update(VERIFIER).digest('base64url'),
      code_challenge_method: 'S256',
      ...other,
    })
    return `${this.#provider}/oauth2/auth?${query.toString()}`
  }

  /** Logs the demo user in, and returns the parameters of the callback. */
  async logIn(browser = clientBrowser()): Promise<URLSearchParams> {
    return callbackOf(await browser.submit(await browser.navigate(this.authorizationUrl()), DEMO_USER))
  }

  /** Exchanges the code of a callback; single fields may be replaced by wrong ones. */
  exchange(callback: URLSearchParams, other: Readonly<Record<string, string>> = {}): Promise<TokenAnswer> {
    return this.#tokenRequest({
      grant_type: 'authorization_code',
      code: callback.get('code') ?? '',
      code_verifier: VERIFIER,
      redirect_uri: REDIRECT_URI,
      ...other,
    })
  }

  refresh(refreshToken: string): Promise<TokenAnswer> {
    return this.#tokenRequest({ grant_type: 'refresh_token', refresh_token: refreshToken })
  }

  async revoke(token: string): Promise<void> {
    await this.#post('/oauth2/revoke', { token })
  }

  async #tokenRequest(fields: Record<string, string>): Promise<TokenAnswer> {
    const response = await this.#post('/oauth2/token', fields)
    const body = (await response.json()) as Record<string, unknown>
    return { status: response.status, body, token: String(body['access_token']) }
  }

  #post(path: string, fields: Record<string, string>): Promise<Response> {
    const body = new URLSearchParams({ client_id: CLIENT_ID, ...fields })
    return fetch(this.#provider + path, { method: 'POST', body })
  }
}

/**
 * The parameters of the provider's redirect.
 * @throws Error when there was no redirect
 */
export function callbackOf({ url, body }: Arrival): URLSearchParams {
  if (!url.href.startsWith(`${REDIRECT_URI}?`)) throw new Error(`no callback, but ${body}`)
  return url.searchParams
}
