import { setTimeout as delay } from 'node:timers/promises'
import { Registry } from 'prom-client'
import { ConfigError, type Config } from '../config/config.ts'
import { PROVIDER_BACKOFF } from '../oauth/circuit-breaker.ts'
import { discover } from '../oauth/discovery.ts'
import { backoffMs } from '../time/backoff.ts'
import type { ServerLog } from '../telemetry/log.ts'
import { EXIT, exitAfterFlush } from './exit.ts'
import type { OpsPort, OpsSource } from './ops-listener.ts'
import { handleSignals } from './signals.ts'

/**
 * Completes the settings with what the provider says about itself (DISCOVERY). While the provider is away, the process
 * waits, alive and not ready. If its answer shows that the settings are wrong, it prints why and ends with exit code 78.
 * In both cases the promise stays pending, so nothing starts with half a configuration.
 */
export async function discoverOrExit(config: Config, serverLog: ServerLog, ops: OpsPort): Promise<Config> {
  const { log } = serverLog
  const { issuer } = config.oauth
  handleSignals((signal) => {
    log.info({ signal }, 'exiting during the start')
    void exitAfterFlush(serverLog, 0)
  })
  await ops.report(waiting())
  for (let failures = 0; ; failures++) {
    const discovery = await discover(config.oauth)
    switch (discovery.is) {
      case 'found': {
        const { provider, warnings } = discovery
        for (const warning of warnings) log.warn(warning)
        const { authorizationUrl, tokenUrl, parUrl, revocationUrl, issuerRequired, oidc } = provider
        const { jwksUrl, endSessionUrl } = oidc ?? {}
        const endpoints = { authorizationUrl, tokenUrl, parUrl, revocationUrl, jwksUrl, endSessionUrl }
        log.info({ issuer, ...endpoints, issuerRequired }, 'provider discovered')
        return { ...config, oauth: { ...config.oauth, ...provider } }
      }
      case 'refused':
        return exitWith(new ConfigError([{ setting: 'ISSUER', message: discovery.message }]), serverLog)
      case 'away': {
        const retryMs = Math.round(backoffMs(failures, PROVIDER_BACKOFF))
        log.warn({ issuer, retryMs, cause: discovery.cause }, 'waiting for the metadata of the provider')
        await delay(retryMs)
      }
    }
  }
}

/** Tells operators that this process is alive, and why it is not ready. */
function waiting(): OpsSource {
  const registry = new Registry()
  return {
    reasons: () => ['waiting for the metadata of the provider'],
    warnings: () => [],
    registry: () => registry,
  }
}

async function exitWith(error: ConfigError, serverLog: ServerLog): Promise<never> {
  process.stderr.write(`${error.message}\n`)
  return exitAfterFlush(serverLog, EXIT.config)
}
