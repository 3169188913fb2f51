import type { Config } from '../config/config.ts'
import type { CheckResult } from '../config/setting-rule.ts'
import { openUpstreamSocket, PUBLIC_SOCKET_PATH } from '../sockets/upstream-socket.ts'
import { probeRedis } from '../store/probe.ts'
import { checkApi } from './check-api.ts'
import { checkCollector } from './check-collector.ts'
import { checkProvider } from './check-provider.ts'
import { descriptorWarning } from './descriptor-limit.ts'
import { EXIT } from './exit.ts'
import { TIMEOUT_MS, unreachable } from './reach.ts'

const NO_BUDGET =
  'is empty: if upstream limits the calls of an address, orders fail when all users together call too often'

/**
 * Runs `--check`: connects to every service that the settings name, all at once, and prints a line for each. Prints no
 * secrets.
 * @returns the exit code
 */
export async function check(config: Config, print: (line: string) => void): Promise<number> {
  const { oauth, upstream, relay, redisUrl, idempotency, traces } = config
  const results = await Promise.all([
    redisUrl === undefined
      ? []
      : probeRedis(redisUrl.current, {
          timeoutMs: TIMEOUT_MS,
          replicas: idempotency.replicas,
          hasSubjects: config.identity !== undefined || oauth.oidc !== undefined,
        }),
    checkProvider(oauth),
    checkApi(config),
    checkSockets(relay),
    traces === undefined ? [] : checkCollector(traces),
  ])
  // The limit of this process. The server may have another one.
  const limit = descriptorWarning(relay.maxRelays)
  const kind = config.production ? 'production' : 'development'
  const all: CheckResult[] = [
    { is: 'ok', setting: 'settings', message: `valid, for ${kind} at ${config.publicUrl}` },
    ...config.warnings.map((message) => warning('settings', message)),
    ...(config.production && upstream.budget === undefined ? [warning('UPSTREAM_BUDGET', NO_BUDGET)] : []),
    ...(limit === undefined ? [] : [warning('MAX_RELAYS', limit)]),
    ...results.flat(),
  ]
  for (const { is, setting, message, advice } of all) {
    print(`${is.padEnd(8)} ${setting.padEnd(17)} ${message}`)
    if (advice !== undefined) print(`${' '.repeat(27)}${advice}`)
  }
  return all.some(({ is }) => is === 'failed') ? EXIT.unavailable : 0
}

function warning(setting: string, message: string): CheckResult {
  return { is: 'warning', setting, message }
}

/** Opens a public socket upstream, as the server does for a browser. */
async function checkSockets({ wsUrl, maxUpstreamMessageBytes }: Config['relay']): Promise<CheckResult> {
  const setting = 'WS_URL'
  const where = new URL(wsUrl).origin
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const outcome = await openUpstreamSocket(wsUrl + PUBLIC_SOCKET_PATH, maxUpstreamMessageBytes, signal)
  if (outcome.is === 'open') {
    outcome.connection.socket.terminate()
    return { is: 'ok', setting, message: `${where} accepts sockets` }
  }
  const { why } = outcome
  if (!why.startsWith('status')) return unreachable(setting, where, why === 'aborted' ? 'TIMEOUT' : why)
  const advice = `Check WS_URL: the path of public sockets is WS_URL + ${PUBLIC_SOCKET_PATH}.`
  return { is: 'failed', setting, message: `${where} refuses sockets (${why})`, advice }
}
