import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import { connect as connectTcp, isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Config } from '../config/config.ts'
import type { CheckResult } from '../config/check-result.ts'
import { withoutBrackets } from '../config/hostname.ts'
import { probeTokenEndpoint } from '../oauth/probe.ts'
import { openUpstreamSocket, PUBLIC_SOCKET_PATH } from '../sockets/upstream-socket.ts'
import { probeRedis } from '../store/probe.ts'
import { descriptorWarning } from './descriptor-limit.ts'
import { EXIT } from './exit.ts'

type Result = Omit<CheckResult, 'setting'>

const TIMEOUT_MS = 5000
const HEALTH_PATH = '/v1/health'

/** Advice about common errors, by error code. */
const ADVICE: Readonly<Record<string, string>> = {
  ENOTFOUND: 'The name cannot be resolved: check the address, and DNS on this machine.',
  EAI_AGAIN: 'The name server does not respond: check DNS on this machine.',
  ECONNREFUSED: 'Nothing listens there: check the host and the port, and that the service runs.',
  TIMEOUT: 'It does not respond: check the address, and any firewalls and proxies on the way.',
}
const NO_BUDGET =
  'is empty: if upstream limits the calls of an address, orders fail when all users together call too often'
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO|ALTNAME/
const CERTIFICATE_ADVICE =
  'Its certificate is not trusted: check the address, or name your certificate authority in NODE_EXTRA_CA_CERTS.'
const OTHER_ADVICE = 'Check the address, and whether it uses TLS.'

/**
 * Runs `--check`: connects to every service that the settings name, all at once, and prints a line for each. Prints no
 * secrets.
 * @returns the exit code
 */
export async function check(config: Config, print: (line: string) => void): Promise<number> {
  const { oauth, upstream, relay, redisUrl } = config
  const results = await Promise.all([
    redisUrl === undefined ? [] : probeRedis(redisUrl, TIMEOUT_MS),
    reach('AUTH_URL', oauth.authUrl, () => probeTokenEndpoint(oauth)),
    reach('API_URL', upstream.apiUrl, requestHealth),
    checkSockets(relay),
    oauth.revocationUrl === undefined ? [] : reach('REVOCATION_URL', oauth.revocationUrl, connect),
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
    print(`${is.padEnd(8)} ${setting.padEnd(15)} ${message}`)
    if (advice !== undefined) print(`${' '.repeat(25)}${advice}`)
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

/** Makes a check result of what `attempt` returns or throws. */
async function reach(
  setting: string,
  address: string,
  attempt: (url: URL, signal: AbortSignal) => Promise<Result>,
): Promise<CheckResult> {
  const { origin } = new URL(address)
  try {
    const result = await attempt(new URL(address), AbortSignal.timeout(TIMEOUT_MS))
    return { ...result, setting, message: `${origin} ${result.message}` }
  } catch (error) {
    return unreachable(setting, origin, faultOf(error))
  }
}

function unreachable(setting: string, where: string, fault: string): CheckResult {
  const advice = CERTIFICATE.test(fault) ? CERTIFICATE_ADVICE : (ADVICE[fault] ?? OTHER_ADVICE)
  return { is: 'failed', setting, message: `${where} cannot be reached (${fault})`, advice }
}

async function requestHealth(base: URL, signal: AbortSignal): Promise<Result> {
  const url = base.href.replace(/\/$/, '') + HEALTH_PATH
  const request = (base.protocol === 'https:' ? https : http).get(url, { agent: false, signal })
  try {
    const [{ statusCode = 0 }] = (await once(request, 'response', { signal })) as [http.IncomingMessage]
    if (statusCode >= 200 && statusCode < 300) return { is: 'ok', message: `is healthy (${statusCode})` }
    const advice = `Check API_URL: the health request goes to API_URL + ${HEALTH_PATH}.`
    return { is: 'warning', message: `responds, but is not healthy (${statusCode})`, advice }
  } finally {
    request.on('error', () => undefined).destroy()
  }
}

async function connect({ protocol, hostname, port }: URL, signal: AbortSignal): Promise<Result> {
  const isTls = protocol === 'https:'
  const host = withoutBrackets(hostname)
  const target = { host, port: Number(port) || (isTls ? 443 : 80) }
  const socket = isTls ? connectTls({ ...target, ...(isIP(host) === 0 && { servername: host }) }) : connectTcp(target)
  try {
    await once(socket, isTls ? 'secureConnect' : 'connect', { signal })
    return { is: 'ok', message: isTls ? 'accepts TLS connections' : 'accepts connections' }
  } finally {
    socket.on('error', () => undefined).destroy()
  }
}

/** Returns the code of the innermost cause, since fetch wraps the errors of a connection. */
function faultOf(error: unknown): string {
  const { name, code, cause } = error as { name: string; code?: unknown; cause?: unknown }
  if (name === 'TimeoutError' || (name === 'AbortError' && cause !== undefined)) return 'TIMEOUT'
  if (cause instanceof Error) return faultOf(cause)
  return typeof code === 'string' ? code : name
}
