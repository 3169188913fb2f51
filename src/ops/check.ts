import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import { connect as connectTcp, isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Config } from '../config.ts'
import type { Finding } from '../finding.ts'
import { probeRedis } from '../store/probe.ts'
import { EXIT } from './exit-codes.ts'

const PATIENCE_MS = 5000

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
  const findings = await Promise.all([
    redisUrl === undefined ? [] : probeRedis(redisUrl, PATIENCE_MS),
    reach('AUTH_URL', oauth.authUrl, requestHttp),
    reach('API_URL', upstream.apiUrl, requestHttp),
    reach('WS_URL', relay.wsUrl, connect),
    oauth.revocationUrl === undefined ? [] : reach('REVOCATION_URL', oauth.revocationUrl, connect),
  ])
  const warnings: Finding[] = config.warnings.map((says) => ({ is: 'warning', setting: 'settings', says }))
  const kind = config.production ? 'production' : 'development'
  const all: Finding[] = [
    { is: 'ok', setting: 'settings', says: `valid, for ${kind} at ${config.publicUrl}` },
    ...warnings,
    ...findings.flat(),
  ]
  for (const { is, setting, says, advice } of all) {
    print(`${is.padEnd(8)} ${setting.padEnd(15)} ${says}`)
    if (advice !== undefined) print(`${' '.repeat(25)}${advice}`)
  }
  return all.some(({ is }) => is === 'failed') ? EXIT.unavailable : 0
}

async function reach(
  setting: string,
  address: string,
  attempt: (url: URL, signal: AbortSignal) => Promise<string>,
): Promise<Finding> {
  const { origin, host, protocol } = new URL(address)
  // The origin of a ws: address is null (WHATWG URL).
  const where = origin === 'null' ? `${protocol}//${host}` : origin
  try {
    return {
      is: 'ok',
      setting,
      says: `${where} ${await attempt(new URL(address), AbortSignal.timeout(PATIENCE_MS))}`,
    }
  } catch (error) {
    const kind = faultOf(error)
    const advice = CERTIFICATE.test(kind) ? CERTIFICATE_ADVICE : (ADVICE[kind] ?? OTHER_ADVICE)
    return { is: 'failed', setting, says: `${where} cannot be reached (${kind})`, advice }
  }
}

/** Any answer will do: what is there speaks HTTP. */
async function requestHttp(url: URL, signal: AbortSignal): Promise<string> {
  const request = (url.protocol === 'https:' ? https : http).get(url, { agent: false, signal })
  try {
    const [{ statusCode }] = (await once(request, 'response', { signal })) as [http.IncomingMessage]
    return `answers (${statusCode})`
  } finally {
    request.on('error', () => undefined).destroy()
  }
}

async function connect({ protocol, hostname, port }: URL, signal: AbortSignal): Promise<string> {
  const isTls = protocol === 'wss:' || protocol === 'https:'
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const target = { host, port: Number(port) || (isTls ? 443 : 80) }
  const socket = isTls
    ? connectTls({ ...target, ...(isIP(host) === 0 && { servername: host }) })
    : connectTcp(target)
  try {
    await once(socket, isTls ? 'secureConnect' : 'connect', { signal })
    return isTls ? 'takes TLS connections' : 'takes connections'
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
