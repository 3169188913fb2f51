import type { FastifyBaseLogger } from 'fastify'
import type { DiscoveredEndpoint, NamedEndpoints, ProviderConfig } from '../config/provider.ts'
import { Window } from '../time/window.ts'
import { discover } from './discovery.ts'

/** How often the metadata is asked for again, at most. */
const ASK_EVERY_MS = 10 * 60_000

/**
 * Watches for discovered endpoints that respond 404. Endpoints are kept until a restart (docs/decisions/0014), so the log
 * says whether the provider has moved them meanwhile.
 * @returns to be called with the address of each 404
 */
export function watchForMoves(config: ProviderConfig, log: FastifyBaseLogger): (url: string) => void {
  const endpoints = new Map<string, DiscoveredEndpoint>()
  for (const endpoint of config.discovered) endpoints.set(new URL(addressOf(config, endpoint) ?? '').href, endpoint)
  const asked = new Window(ASK_EVERY_MS)
  return (url) => {
    const endpoint = endpoints.get(url)
    if (endpoint === undefined || !asked.allows(1)) return
    log.warn({ endpoint }, 'a discovered endpoint of the provider responds 404: endpoints may have moved: restart')
    compare(config, log).catch((err: unknown) => log.error({ err }, 'the metadata of the provider was not compared'))
  }
}

/** Asks for the metadata again, and logs whether its endpoints are still those that this process uses. */
async function compare(config: ProviderConfig, log: FastifyBaseLogger): Promise<void> {
  const { oidc, discovered } = config
  const asBefore = oidc && { ...oidc, ...(discovered.includes('jwksUrl') && { jwksUrl: undefined }) }
  const discovery = await discover({ ...config, discovery: namedOf(config), oidc: asBefore })
  switch (discovery.is) {
    case 'found': {
      const { provider } = discovery
      const moved = discovered.filter((endpoint) => addressOf(provider, endpoint) !== addressOf(config, endpoint))
      if (moved.length === 0) {
        return log.warn('the metadata of the provider names the same endpoints as before, so a restart would not help')
      }
      return log.error({ moved }, 'the metadata of the provider names other endpoints than before: restart')
    }
    case 'refused':
      return log.error(`the metadata of the provider can no longer be used: ISSUER ${discovery.message}`)
    case 'away':
      return log.warn({ cause: discovery.cause }, 'the provider does not say whether its endpoints have moved')
  }
}

function addressOf(config: ProviderConfig, endpoint: DiscoveredEndpoint): string | undefined {
  return endpoint === 'jwksUrl' ? config.oidc?.jwksUrl : config[endpoint]
}

/** The endpoints that have a setting of their own, as they were before the discovery. */
function namedOf({ discovered, tokenUrl, authorizationUrl, parUrl, revocationUrl }: ProviderConfig): NamedEndpoints {
  const used: NamedEndpoints = { tokenUrl, authorizationUrl, parUrl, revocationUrl }
  return { ...used, ...Object.fromEntries(discovered.map((endpoint) => [endpoint, undefined])) }
}
