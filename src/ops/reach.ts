import { once } from 'node:events'
import { connect as connectTcp, isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { CheckResult } from '../config/setting-rule.ts'
import { withoutBrackets } from '../config/hostname.ts'
import { dialing } from '../peers/dialing.ts'
import { names } from '../peers/names.ts'
import type { ProbeResult } from '../oauth/probe-requests.ts'

/** Time limit of a check. */
export const TIMEOUT_MS = 5000

const SILENT = 'It does not respond: check the address, and any firewalls and proxies on the way.'
const NO_ROUTE = 'This machine has no route there: check the address, and the network of this machine.'

/** Advice about common errors, by error code. */
const ADVICE: Readonly<Record<string, string>> = {
  ENOTFOUND: 'The name cannot be resolved: check the address, and DNS on this machine.',
  EAI_AGAIN: 'The name server does not respond: check DNS on this machine.',
  ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: 'It does not speak HTTP/1.1, and this server speaks nothing else.',
  ECONNREFUSED: 'Nothing listens there: check the host and the port, and that the service runs.',
  'bad port': 'No browser and no fetch connects to this port, since it is known for other protocols: use another one.',
  ENETUNREACH: NO_ROUTE,
  EHOSTUNREACH: NO_ROUTE,
  EADDRNOTAVAIL: NO_ROUTE,
  ETIMEDOUT: SILENT,
  UND_ERR_CONNECT_TIMEOUT: SILENT,
  TIMEOUT: SILENT,
}
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO|ALTNAME/
const CERTIFICATE_ADVICE =
  'Its certificate is not trusted: check the address, or name your certificate authority in NODE_EXTRA_CA_CERTS.'
/** The alerts of TLS by which a server refuses its client. They name the certificate of the client, if any. */
const ALERT = /_ALERT_/
const ALERT_ADVICE =
  'It refuses this server: check the address, and whether it asks for a client certificate, which this server has not.'
const OTHER_ADVICE = 'Check the address, and whether it uses TLS.'
/** The codes of undici for bytes that it cannot read as a response. */
const UNREADABLE = /^HTTPParserError$|^HPE_|^UND_ERR_(?:RES_CONTENT_LENGTH_MISMATCH|HEADERS_OVERFLOW)$/
const UNREADABLE_ADVICE = `${OTHER_ADVICE} If both are right, docs/upstream.md (Responses) says what is not taken.`

/** Makes a check result of what `attempt` returns or throws. Its messages then start with the origin of the address. */
export async function reach(
  setting: string,
  address: string,
  attempt: (url: URL, signal: AbortSignal) => Promise<ProbeResult>,
): Promise<CheckResult> {
  const { origin } = new URL(address)
  try {
    const result = await attempt(new URL(address), AbortSignal.timeout(TIMEOUT_MS))
    return { ...result, setting, message: `${origin} ${result.message}` }
  } catch (error) {
    const { fault, isAnswered } = faultOf(error)
    if (!isAnswered) return unreachable(setting, origin, fault)
    const message = `${origin} answers, but with nothing that this server can read (${fault})`
    return { is: 'failed', setting, message, advice: UNREADABLE_ADVICE }
  }
}

/** The result for a service that does not respond. @param fault the code of the error */
export function unreachable(setting: string, where: string, fault: string): CheckResult {
  const { hostname } = new URL(where)
  // The lookup is still running, so that nothing has failed yet but the time limit.
  if (ADVICE[fault] === SILENT && names.isUnresolved(hostname)) return unreachable(setting, where, 'EAI_AGAIN')
  return { is: 'failed', setting, message: `${where} cannot be reached (${fault})`, advice: adviceOn(fault) }
}

function adviceOn(fault: string): string {
  const known = ADVICE[fault]
  if (known !== undefined) return known
  if (ALERT.test(fault)) return ALERT_ADVICE
  return CERTIFICATE.test(fault) ? CERTIFICATE_ADVICE : OTHER_ADVICE
}

/** Only connects: for an endpoint that no harmless request can be sent to. */
export async function connect({ protocol, hostname, port }: URL, signal: AbortSignal): Promise<ProbeResult> {
  const isTls = protocol === 'https:'
  const host = withoutBrackets(hostname)
  const target = { host, port: Number(port) || (isTls ? 443 : 80), ...dialing('provider', TIMEOUT_MS) }
  const socket = isTls ? connectTls({ ...target, ...(isIP(host) === 0 && { servername: host }) }) : connectTcp(target)
  try {
    await once(socket, isTls ? 'secureConnect' : 'connect', { signal })
    return { is: 'ok', message: isTls ? 'accepts TLS connections' : 'accepts connections' }
  } finally {
    socket.on('error', () => undefined).destroy()
  }
}

/** The part of a failure that is looked at. `socket` is what undici says of a connection that has failed. */
type Failure = Error & { readonly code?: unknown; readonly socket?: { readonly bytesRead?: number } | null }

/** Returns the code of the innermost cause, since fetch wraps the errors of a connection, and whether anything was answered. */
function faultOf(error: unknown): { readonly fault: string; readonly isAnswered: boolean } {
  const { name, message, code, cause, socket } = error as Failure
  if (name === 'TimeoutError' || (name === 'AbortError' && cause !== undefined)) {
    return { fault: 'TIMEOUT', isAnswered: false }
  }
  if (cause instanceof Error) return faultOf(cause)
  const named = typeof code === 'string' ? code : name
  const fault = message === 'bad port' ? message : named
  return { fault, isAnswered: UNREADABLE.test(fault) || (socket?.bytesRead ?? 0) > 0 }
}
