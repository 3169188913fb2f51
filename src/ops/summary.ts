import type { Config } from '../config/config.ts'
import { parseRedisUrl } from '../config/redis-address.ts'

/** Summarises the settings for the first line of the log: addresses and choices, but no secrets. */
export function summary(config: Config): object {
  const { publicUrl, production, workers, http, listen } = config
  return {
    publicUrl,
    production,
    workers,
    listen,
    node: process.versions.node,
    frontends: [...http.frontendOrigins],
    provider: config.oauth.authUrl,
    client: clientFacts(config.oauth),
    upstream: { rest: config.upstream.apiUrl, sockets: config.relay.wsUrl },
    upstreamBudget: budget(config),
    publicFeed: config.feed.isShared ? 'shared' : 'relay',
    sessions: sessionStore(config.redisUrl?.current),
    trustProxy: config.trustProxy,
    secrets: config.secrets.current.length,
    traces: traces(config),
    changedLimits: config.changedLimits,
  }
}

/** The budget as its settings have it. */
function budget({ upstream }: Config): object | string {
  if (upstream.budget === undefined) return 'none'
  const { windows, name, shares, alone, instances } = upstream.budget
  const calls = windows.map(({ calls, windowMs }) => `${calls}/${windowMs / 1000}`).join(',')
  return { calls, name, shares, alone, instances }
}

function traces({ traces }: Config): object | string {
  return traces === undefined ? 'none' : { collector: new URL(traces.url).origin, sampler: traces.sampler }
}

/** How this client presents itself to the provider. */
function clientFacts({ issuer, clientAuth, clientKeys, parUrl, discovery }: Config['oauth']): object {
  return {
    issuer,
    auth: clientAuth,
    // The ids are public: the provider has them.
    ...(clientKeys && { keys: clientKeys.current.map(({ id }) => id) }),
    pushes: parUrl !== undefined,
    discovers: discovery !== undefined,
  }
}

/** The address of the session store without its credentials. */
function sessionStore(redisUrl: string | undefined): object {
  const address = redisUrl === undefined ? undefined : parseRedisUrl(redisUrl)
  switch (address?.is) {
    case undefined:
      return { in: 'memory' }
    case 'single':
      return { in: 'redis', servers: [new URL(address.url).host] }
    case 'cluster':
    case 'sentinel':
      return { in: address.is, servers: address.nodes.map(({ host, port }) => `${host}:${port}`) }
  }
}
