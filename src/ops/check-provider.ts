import type { CheckResult } from '../config/setting-rule.ts'
import type { Config } from '../config/config.ts'
import { discover } from '../oauth/discovery.ts'
import { UnusableResponse } from '../oauth/provider-response.ts'
import { probeIssuer, probePush, probeTokenEndpoint } from '../oauth/probe.ts'
import { connect, reach } from './reach.ts'

type OAuth = Config['oauth']

/** Checks the provider: its metadata, if that is to be discovered, and then every endpoint. */
export async function checkProvider(oauth: OAuth): Promise<CheckResult[]> {
  if (oauth.discovery === undefined) return checkEndpoints(oauth)
  let complete: OAuth | undefined
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

async function checkEndpoints(oauth: OAuth): Promise<CheckResult[]> {
  const { authUrl, tokenUrl, authorizationUrl, parUrl, revocationUrl } = oauth
  const isDefault = tokenUrl.startsWith(`${authUrl}/`)
  const results = await Promise.all([
    reach(isDefault ? 'AUTH_URL' : 'TOKEN_URL', tokenUrl, () => probeTokenEndpoint(oauth)),
    parUrl === undefined ? [] : reach('PAR_URL', parUrl, () => probePush(oauth)),
    checkIssuer(oauth, authorizationUrl),
    revocationUrl === undefined ? [] : reach('REVOCATION_URL', revocationUrl, connect),
  ])
  return results.flat()
}

async function checkIssuer(oauth: OAuth, authorizationUrl: string): Promise<CheckResult[]> {
  const result = await probeIssuer(oauth)
  if (result === undefined) return []
  return [{ ...result, setting: 'ISSUER', message: `${new URL(authorizationUrl).origin} ${result.message}` }]
}
