import type { ProviderConfig } from '../config/provider.ts'
import type { CheckResult } from '../config/setting-rule.ts'
import { discover } from '../oauth/discovery.ts'
import { UnusableResponse } from '../oauth/provider-response.ts'
import { probePush, probeTokenEndpoint } from '../oauth/probe.ts'
import { probeAuthorization } from '../oauth/probe-authorization.ts'
import { clockResult, secondsAheadOf } from '../oauth/probe-clock.ts'
import { connect, reach } from './reach.ts'

/** Checks the provider: its metadata, if that is to be discovered, and then every endpoint. */
export async function checkProvider(oauth: ProviderConfig): Promise<CheckResult[]> {
  if (oauth.discovery === undefined) return checkEndpoints(oauth)
  let complete: ProviderConfig | undefined
  const warnings: CheckResult[] = []
  const found = await reach('DISCOVERY', oauth.issuer, async () => {
    const discovery = await discover(oauth)
    switch (discovery.is) {
      case 'found': {
        complete = { ...oauth, ...discovery.provider }
        for (const message of discovery.warnings) warnings.push({ is: 'warning', setting: 'CLIENT_AUTH', message })
        return { is: 'ok', message: 'has metadata that names every endpoint' }
      }
      case 'refused':
        return { is: 'failed', message: `has no metadata that can be used: ISSUER ${discovery.message}` }
      case 'away': {
        const { cause } = discovery
        if (!(cause instanceof UnusableResponse)) throw cause
        return { is: 'failed', message: `has no metadata at the moment (${cause.why})` }
      }
    }
  })
  return complete === undefined ? [found] : [found, ...warnings, ...(await checkEndpoints(complete))]
}

async function checkEndpoints(oauth: ProviderConfig): Promise<CheckResult[]> {
  const { parUrl, revocationUrl } = oauth
  const results = await Promise.all([
    checkToken(oauth),
    parUrl === undefined ? [] : reach('PAR_URL', parUrl, () => probePush(oauth)),
    checkAuthorization(oauth),
    revocationUrl === undefined ? [] : reach('REVOCATION_URL', revocationUrl, connect),
  ])
  return results.flat()
}

/** Checks the token endpoint, which tells its time first. If it cannot be reached, that is said once. */
async function checkToken(oauth: ProviderConfig): Promise<CheckResult[]> {
  const { authUrl, tokenUrl } = oauth
  const setting = tokenUrl.startsWith(`${authUrl}/`) ? 'AUTH_URL' : 'TOKEN_URL'
  let aheadSeconds: number | undefined
  const clock = await reach('clock', tokenUrl, async () => {
    aheadSeconds = await secondsAheadOf(tokenUrl)
    return clockResult(aheadSeconds)
  })
  const token = await reach(setting, tokenUrl, () => probeTokenEndpoint(oauth, aheadSeconds))
  return clock.is === 'failed' ? [token] : [token, clock]
}

/** Checks the endpoint to which browsers are sent. This machine may be unable to reach it. */
async function checkAuthorization(oauth: ProviderConfig): Promise<CheckResult[]> {
  const { authUrl, authorizationUrl, tokenUrl } = oauth
  const { origin } = new URL(authorizationUrl)
  const setting = authorizationUrl.startsWith(`${authUrl}/`) ? 'AUTH_URL' : 'AUTHORIZATION_URL'
  try {
    const { request, issuer } = await probeAuthorization(oauth)
    return [[setting, request] as const, ['ISSUER', issuer] as const].flatMap(([setting, result]) =>
      result === undefined ? [] : [{ ...result, setting, message: `${origin} ${result.message}` }],
    )
  } catch {
    // The line about the token endpoint says it already.
    if (origin === new URL(tokenUrl).origin) return []
    const message = `${origin} cannot be reached from here, so whether it accepts this client could not be checked`
    return [{ is: 'warning', setting, message, advice: 'If browsers can reach it, try a login.' }]
  }
}
