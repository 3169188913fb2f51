import type { ProviderConfig } from '../config/provider.ts'
import { isIssuer } from './provider.ts'
import { fetchHead } from './provider-connections.ts'
import { REQUEST_ADVICE, requestUrl, type ProbeResult } from './probe-requests.ts'

/** The authorization endpoint sent the browser back here, sent it elsewhere, or showed a page. */
type Reaction =
  | { readonly is: 'callback'; readonly parameters: URLSearchParams }
  | { readonly is: 'page'; readonly status: number; readonly error: string | undefined }

interface AuthorizationProbe {
  /** Undefined if the request could not be pushed, which the check of PAR_URL says. */
  readonly request: ProbeResult | undefined
  /** Undefined if it cannot be seen and the settings do not depend on it. */
  readonly issuer: ProbeResult | undefined
}

const TIMEOUT_MS = 5000
const MAX_SHOWN = 200
/** Errors of a provider that has nothing against the request, except that no user is there (OpenID Connect Core §3.1.2.6). */
const NOBODY_THERE = /^(login|interaction|consent|account_selection)_required$/
/** Refusals of who asks, and not of what is asked: a browser may fare better. */
const NOT_FOR_PROGRAMS: ReadonlySet<number> = new Set([403, 429])

/**
 * Makes the authorization request of a login for a user who must not be asked anything (`prompt=none`). So the provider sends the
 * browser straight back, with an error that says that nobody is logged in, and with its `iss`. Whether a refusal is about more than the
 * prompt is seen by the same request without one.
 * @throws the failure, if the endpoint could not be reached
 */
export async function probeAuthorization(config: ProviderConfig): Promise<AuthorizationProbe> {
  const quiet = await reactionTo(config, 'none')
  const isAccepted = quiet !== undefined && whyRefused(quiet) === undefined
  const decisive = isAccepted ? quiet : ((await reactionTo(config)) ?? quiet)
  // Even the refusal of a request that was not pushed has an iss.
  const named = quiet ?? (await reactionTo({ ...config, parUrl: undefined }, 'none'))
  return { request: decisive && requestResult(decisive), issuer: named && issuerResult(config, named) }
}

async function reactionTo(config: ProviderConfig, prompt?: 'none'): Promise<Reaction | undefined> {
  const request = await requestUrl(config, prompt)
  if (request.is !== 'ready') return undefined
  const response = await fetchHead(request.url, TIMEOUT_MS, { accept: 'text/html' })
  const target = URL.parse(response.headers.get('location') ?? '', request.url.href)
  if (target !== null && target.href.startsWith(`${config.redirectUri}?`)) {
    return { is: 'callback', parameters: target.searchParams }
  }
  return { is: 'page', status: response.status, error: target?.searchParams.get('error') ?? undefined }
}

/** Why a login would fail; undefined if the provider would let the user log in, as far as that can be seen. */
function whyRefused(reaction: Reaction): string | undefined {
  if (reaction.is === 'page') {
    const { status, error } = reaction
    if (error !== undefined) return printable(error)
    return status >= 400 && !NOT_FOR_PROGRAMS.has(status) ? `status ${status}` : undefined
  }
  const error = reaction.parameters.get('error')
  if (error === null || NOBODY_THERE.test(error)) return undefined
  const description = reaction.parameters.get('error_description')
  return printable(description === null ? error : `${error}: ${description}`)
}

function requestResult(reaction: Reaction): ProbeResult {
  const refusal = whyRefused(reaction)
  if (refusal !== undefined) {
    const message = `refuses the authorization requests of this client, so every login fails (${refusal})`
    return { is: 'failed', message, advice: REQUEST_ADVICE }
  }
  if (reaction.is === 'callback') return { is: 'ok', message: 'accepts the authorization requests of this client' }
  const { status } = reaction
  if (status < 400)
    return { is: 'ok', message: 'shows a page of its own for the authorization requests of this client' }
  const message = `does not say whether it accepts the authorization requests of this client (status ${status})`
  return { is: 'warning', message, advice: 'It may not serve programs. Try a login.' }
}

function issuerResult({ issuerRequired, ...config }: ProviderConfig, reaction: Reaction): ProbeResult | undefined {
  if (reaction.is === 'page') {
    const message = 'does not redirect such a request to this client, so the iss of its callbacks could not be checked'
    return config.isIssuerNamed || issuerRequired ? { is: 'warning', message } : undefined
  }
  const [issuer, ...more] = reaction.parameters.getAll('iss')
  if (issuer === undefined) {
    if (!issuerRequired) return { is: 'ok', message: 'sends callbacks without iss' }
    return { is: 'failed', message: 'sends callbacks without iss, so every login fails (ISSUER_REQUIRED)' }
  }
  if (more.length === 0 && isIssuer({ ...config, issuerRequired }, issuer)) {
    return { is: 'ok', message: 'sends callbacks with the right iss' }
  }
  const message = `sends callbacks with another iss, so every login fails: ${JSON.stringify(issuer.slice(0, MAX_SHOWN))}`
  return { is: 'failed', message, advice: 'Set ISSUER to exactly this, if it is your provider.' }
}

/** A text of the provider in one line of a terminal. */
function printable(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]+/g, ' ').slice(0, MAX_SHOWN)
}
