import { generateKeyPairSync, randomBytes, sign, X509Certificate, type KeyObject } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { fileURLToPath } from 'node:url'

/** A certificate for a server, its key, and the authority that a client may trust instead of being warned. All are PEM. */
export interface Certificate {
  readonly key: string
  readonly cert: string
  readonly authority: string
}

const FOLDER = fileURLToPath(new URL('../node_modules/.cache/sandbox-certificates', import.meta.url))
const DAY_MS = 86_400_000
/** Phones refuse certificates that last much longer. */
const DAYS = 365

/**
 * Returns the certificate for these names and IPv4 addresses of this machine. It is kept from run to run, so that a phone has
 * to accept it once. The key of its authority is not kept: whoever trusts the authority trusts this certificate and no other.
 */
export function certificateFor(names: readonly string[]): Certificate {
  const file = `${FOLDER}/${names.join('-')}.json`
  const kept = readKept(file)
  if (kept !== undefined) return kept
  const made = makeCertificate(names)
  mkdirSync(FOLDER, { recursive: true })
  writeFileSync(file, JSON.stringify(made), { mode: 0o600 })
  return made
}

/** Undefined where there is none, or one that ends within a day. */
function readKept(file: string): Certificate | undefined {
  try {
    const kept = JSON.parse(readFileSync(file, 'utf8')) as Certificate
    return new X509Certificate(kept.cert).validToDate.getTime() > Date.now() + DAY_MS ? kept : undefined
  } catch {
    return undefined
  }
}

function makeCertificate(names: readonly string[]): Certificate {
  const [authority, server] = [0, 0].map(() => generateKeyPairSync('ec', { namedCurve: 'P-256' }))
  if (authority === undefined || server === undefined) throw new Error('no keys')
  const issuer = `trading-bff sandbox ${randomBytes(4).toString('hex')}`
  const issue = (subject: string, key: KeyObject, extensions: readonly Buffer[]): string =>
    certificate({ issuer, signingKey: authority.privateKey, subject, key, extensions })
  return {
    key: server.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: issue(names[0] ?? '', server.publicKey, forServer(names)),
    authority: issue(issuer, authority.publicKey, FOR_AUTHORITY),
  }
}

interface Contents {
  readonly issuer: string
  readonly signingKey: KeyObject
  readonly subject: string
  readonly key: KeyObject
  readonly extensions: readonly Buffer[]
}

/** A certificate as PEM (RFC 5280 §4.1). Node can read certificates, but not write them. */
function certificate({ issuer, signingKey, subject, key, extensions }: Contents): string {
  const now = Date.now()
  const serial = Buffer.concat([Buffer.from([0x40]), randomBytes(15)])
  const contents = sequence(
    der(0xa0, der(INTEGER, Buffer.from([2]))),
    der(INTEGER, serial),
    ECDSA_WITH_SHA256,
    name(issuer),
    // The clock of a phone may be behind.
    sequence(utcTime(now - DAY_MS), utcTime(now + DAYS * DAY_MS)),
    name(subject),
    key.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions)),
  )
  const signature = bits(0, sign('sha256', contents, signingKey))
  return new X509Certificate(sequence(contents, ECDSA_WITH_SHA256, signature)).toString()
}

const [BOOLEAN, INTEGER, BITS, OCTETS, OBJECT_ID, UTF8, UTC_TIME, SEQUENCE, SET] = [1, 2, 3, 4, 6, 12, 0x17, 0x30, 0x31]
/** The choices of a GeneralName (RFC 5280 §4.2.1.6). */
const [DNS_NAME, IP_ADDRESS] = [0x82, 0x87]

/** A value in DER (ITU-T X.690): its tag, its length, its content. */
function der(tag: number, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content)
  const { length } = body
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), body])
}

function sequence(...content: readonly Buffer[]): Buffer {
  return der(SEQUENCE, ...content)
}

function bits(unused: number, ...content: readonly Buffer[]): Buffer {
  return der(BITS, Buffer.from([unused]), ...content)
}

function objectId(hex: string): Buffer {
  return der(OBJECT_ID, Buffer.from(hex, 'hex'))
}

function name(commonName: string): Buffer {
  return sequence(der(SET, sequence(objectId('550403'), der(UTF8, Buffer.from(commonName)))))
}

function utcTime(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replaceAll(/\D/g, '').slice(2, 14)
  return der(UTC_TIME, Buffer.from(`${digits}Z`))
}

function extension(hex: string, value: Buffer, isCritical = true): Buffer {
  const critical = isCritical ? [der(BOOLEAN, Buffer.from([255]))] : []
  return sequence(objectId(hex), ...critical, der(OCTETS, value))
}

const ECDSA_WITH_SHA256 = sequence(objectId('2a8648ce3d040302'))
const [BASIC_CONSTRAINTS, KEY_USAGE, EXTENDED_KEY_USAGE, ALT_NAME] = ['551d13', '551d0f', '551d25', '551d11']
/** keyCertSign alone. */
const FOR_AUTHORITY = [
  extension(BASIC_CONSTRAINTS, sequence(der(BOOLEAN, Buffer.from([255])))),
  extension(KEY_USAGE, bits(2, Buffer.from([0b100]))),
]

/** digitalSignature and serverAuth, for these names. */
function forServer(names: readonly string[]): Buffer[] {
  const altNames = names.map((each) =>
    isIP(each) === 4 ? der(IP_ADDRESS, Buffer.from(each.split('.').map(Number))) : der(DNS_NAME, Buffer.from(each)),
  )
  return [
    extension(BASIC_CONSTRAINTS, sequence()),
    extension(KEY_USAGE, bits(7, Buffer.from([0b1000_0000]))),
    extension(EXTENDED_KEY_USAGE, sequence(objectId('2b06010505070301')), false),
    extension(ALT_NAME, sequence(...altNames), false),
  ]
}
