import { request } from 'undici'
import type { CheckResult } from '../config/setting-rule.ts'
import type { Config } from '../config/config.ts'
import type { ProbeResult } from '../oauth/probe-requests.ts'
import { connector } from '../peers/dialing.ts'
import { oneUseAgent } from '../upstream/response-heads.ts'
import { reach } from './reach.ts'

const HEALTH_PATH = '/v1/health'
const MAX_BODY_BYTES = 65_536

/** Checks the REST API: whether it is healthy, and whether it has the path that says whose session a login has created. */
export async function checkApi({ upstream, identity }: Pick<Config, 'upstream' | 'identity'>): Promise<CheckResult[]> {
  const { apiUrl } = upstream
  const statusOf = (path: string, signal: AbortSignal): Promise<number> => requestStatus(upstream, path, signal)
  return Promise.all([
    reach('API_URL', apiUrl, async (_url, signal) => judgeHealth(await statusOf(HEALTH_PATH, signal))),
    ...(identity === undefined
      ? []
      : [reach('IDENTITY_PATH', apiUrl, async (_url, signal) => judgeIdentity(await statusOf(identity.path, signal)))]),
  ])
}

/** Requests a path without a token, and returns the status of the response. Follows no redirect, like the server. */
async function requestStatus(upstream: Config['upstream'], path: string, signal: AbortSignal): Promise<number> {
  const { apiUrl, appIdHeader, appId, connectMs } = upstream
  const dispatcher = oneUseAgent(connector('api', { timeoutMs: connectMs }))
  try {
    const headers = { [appIdHeader]: appId }
    const { statusCode, body } = await request(apiUrl + path, { signal, headers, dispatcher })
    let bytes = 0
    // To its end, which is where some responses turn out to be unreadable.
    for await (const chunk of body) if ((bytes += (chunk as Buffer).length) > MAX_BODY_BYTES) break
    return statusCode
  } finally {
    await dispatcher.destroy()
  }
}

const isSuccess = (status: number): boolean => status >= 200 && status < 300

function judgeHealth(status: number): ProbeResult {
  if (isSuccess(status)) return { is: 'ok', message: `is healthy (${status})` }
  return { is: 'failed', message: `responds, but is not healthy (${status})`, advice: healthAdvice(status) }
}

function healthAdvice(status: number): string {
  const where = `the health request goes to API_URL + ${HEALTH_PATH}`
  if (status >= 300 && status < 400) return `Set API_URL to where it redirects: no redirect is followed, and ${where}.`
  if (status === 401 || status === 403) return `Check API_URL: ${where}, without a token, and must be allowed.`
  if (status === 429) return 'It limits the calls of this address at the moment: try again later.'
  if (status >= 500) return 'It, or a proxy before it, fails: check the service, or try again later.'
  return `Check API_URL: ${where}.`
}

/** A path that exists asks for a token. */
function judgeIdentity(status: number): ProbeResult {
  if (status === 401 || status === 403) return { is: 'ok', message: `has this path and asks for a token (${status})` }
  const advice =
    'Check IDENTITY_PATH: the request goes to API_URL + IDENTITY_PATH. If it fails, sessions have no subject.'
  if (status === 404 || status === 405 || status === 410) {
    return { is: 'failed', message: `has no such path for GET (${status})`, advice }
  }
  if (isSuccess(status)) return { is: 'warning', message: `answers without a token (${status}), so for nobody`, advice }
  return { is: 'warning', message: `does not tell whether it has this path (${status})`, advice }
}
