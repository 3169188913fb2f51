import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import { connect as connectTcp, isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Config } from '../config/config.ts'
import type { CheckResult } from '../config/check-result.ts'
import { probeTokenEndpoint } from '../oauth/probe.ts'
import { openUpstreamSocket, PUBLIC_SOCKET_PATH } from '../sockets/relay/upstream-socket.ts'
import { probeRedis } from '../store/probe.ts'
import { descriptorWarning } from './descriptor-limit.ts'
import { EXIT } from './exit-codes.ts'

const PATIENCE_MS = 5000
const HEALTH_PATH = '/v1/health'

/** What to do about the usual faults, by error code. */
const ADVICE: Readonly<Record<string, string>> = {
  ENOTFOUND: 'The name is not known: check the address, and DNS on this machine.',
  EAI_AGAIN: 'The name server does not answer: check DNS on this machine.',
  ECONNREFUSED: 'Nobody listens there: check host and port, and that it runs.',
  TIMEOUT: 'It does not answer: check the address, firewalls and proxies between here and there.',
}
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO|ALTNAME/
const CERTIFICATE_ADVICE =
  'Its certificate is not trusted here: check the address, or name your authority in NODE_EXTRA_CA_CERTS.'
const OTHER_ADVICE = 'Check the address, and whether it speaks TLS.'

/**
 * `--check`: tries what the settings name, all at once and briefly, and prints a line for each. Nothing printed is
 * secret.
 * @returns the exit code
 */
export async function check(config: Config, print: (line: string) => void): Promise<number> {
  const { oauth, upstream, relay, redisUrl } = config
  const results = await Promise.all([
    redisUrl === undefined ? [] : probeRedis(redisUrl, PATIENCE_MS),
    checkProvider(oauth),
    reach('API_URL', upstream.apiUrl, requestHealth),
    checkSockets(relay),
    oauth.revocationUrl === undefined ? [] : reach('REVOCATION_URL', oauth.revocationUrl, connect),
  ])
  const warnings: CheckResult[] = config.warnings.map((message) => ({
    is: 'warning',
    setting: 'settings',
    message,
  }))
  const kind = config.production ? 'production' : 'development'
  const all: CheckResult[] = [
    { is: 'ok', setting: 'settings', message: `valid, for ${kind} at ${config.publicUrl}` },
    ...warnings,
    ...descriptors(relay.maxRelays),
    ...results.flat(),
  ]
  for (const { is, setting, message, advice } of all) {
    print(`${is.padEnd(8)} ${setting.padEnd(15)} ${message}`)
    if (advice !== undefined) print(`${' '.repeat(25)}${advice}`)
  }
  return all.some(({ is }) => is === 'failed') ? EXIT.unavailable : 0
}

/** Of this process, which may have another limit than the server that it checks for. */
function descriptors(maxRelays: number): CheckResult[] {
  const message = descriptorWarning(maxRelays)
  return message === undefined ? [] : [{ is: 'warning', setting: 'MAX_RELAYS', message }]
}

async function checkProvider(config: Config['oauth']): Promise<CheckResult> {
  const setting = 'AUTH_URL'
  const { origin } = new URL(config.authUrl)
  const found = await probeTokenEndpoint(config)
  if (found.is === 'unreachable') return unreachable(setting, origin, faultOf(found.cause))
  return { ...found, setting, message: `${origin} ${found.message}` }
}

/** Opens a public socket, as a browser would through this server. */
async function checkSockets({ wsUrl, maxUpstreamMessageBytes }: Config['relay']): Promise<CheckResult> {
  const setting = 'WS_URL'
  const { protocol, host } = new URL(wsUrl)
  const where = `${protocol}//${host}`
  const signal = AbortSignal.timeout(PATIENCE_MS)
  const outcome = await openUpstreamSocket(wsUrl + PUBLIC_SOCKET_PATH, maxUpstreamMessageBytes, signal)
  if (outcome.is === 'open') {
    outcome.connection.socket.terminate()
    return { is: 'ok', setting, message: `${where} opens sockets` }
  }
  const { why } = outcome
  if (!why.startsWith('status')) return unreachable(setting, where, why === 'aborted' ? 'TIMEOUT' : why)
  const advice = `Check WS_URL: public sockets are opened at WS_URL + ${PUBLIC_SOCKET_PATH}.`
  return { is: 'failed', setting, message: `${where} opens no socket (${why})`, advice }
}

async function reach(
  setting: string,
  address: string,
  attempt: (url: URL, signal: AbortSignal) => Promise<Omit<CheckResult, 'setting'>>,
): Promise<CheckResult> {
  const { origin } = new URL(address)
  try {
    const found = await attempt(new URL(address), AbortSignal.timeout(PATIENCE_MS))
    return { ...found, setting, message: `${origin} ${found.message}` }
  } catch (error) {
    return unreachable(setting, origin, faultOf(error))
  }
}

function unreachable(setting: string, where: string, fault: string): CheckResult {
  const advice = CERTIFICATE.test(fault) ? CERTIFICATE_ADVICE : (ADVICE[fault] ?? OTHER_ADVICE)
  return { is: 'failed', setting, message: `${where} cannot be reached (${fault})`, advice }
}

async function requestHealth(base: URL, signal: AbortSignal): Promise<Omit<CheckResult, 'setting'>> {
  const url = base.href.replace(/\/$/, '') + HEALTH_PATH
  const request = (base.protocol === 'https:' ? https : http).get(url, { agent: false, signal })
  try {
    const [{ statusCode = 0 }] = (await once(request, 'response', { signal })) as [http.IncomingMessage]
    if (statusCode >= 200 && statusCode < 300) return { is: 'ok', message: `is healthy (${statusCode})` }
    const advice = `Check API_URL: its health is asked for at API_URL + ${HEALTH_PATH}.`
    return { is: 'warning', message: `answers, but is not healthy (${statusCode})`, advice }
  } finally {
    request.on('error', () => undefined).destroy()
  }
}

async function connect(
  { protocol, hostname, port }: URL,
  signal: AbortSignal,
): Promise<Omit<CheckResult, 'setting'>> {
  const isTls = protocol === 'https:'
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const target = { host, port: Number(port) || (isTls ? 443 : 80) }
  const socket = isTls
    ? connectTls({ ...target, ...(isIP(host) === 0 && { servername: host }) })
    : connectTcp(target)
  try {
    await once(socket, isTls ? 'secureConnect' : 'connect', { signal })
    return { is: 'ok', message: isTls ? 'takes TLS connections' : 'takes connections' }
  } finally {
    socket.on('error', () => undefined).destroy()
  }
}

/** The code of the innermost cause: fetch wraps what it met. */
function faultOf(error: unknown): string {
  const { name, code, cause } = error as { name: string; code?: unknown; cause?: unknown }
  if (name === 'TimeoutError' || (name === 'AbortError' && cause !== undefined)) return 'TIMEOUT'
  if (cause instanceof Error) return faultOf(cause)
  return typeof code === 'string' ? code : name
}
