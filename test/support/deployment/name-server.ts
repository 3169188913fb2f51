import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { Test } from 'tap'

/** The address of the resolver in a Docker container. */
const ADDRESS = '127.0.0.11'
const PORT = 53

const HEADER_BYTES = 12
const TYPE_A = 1
const CLASS_IN = 1
/** An authoritative response with recursion, like that of Docker's resolver. */
const FLAGS = 0x8580
const NO_SUCH_NAME = 3
/** A pointer to the name of the question, which follows the header. */
const SAME_NAME = 0xc000 + HEADER_BYTES
/** Docker's value. */
const TTL_SECONDS = 600

/**
 * A resolver that knows one name and its current addresses (RFC 1035). It ends with the test.
 * @param addresses may change at any time
 */
export function startNameServer(t: Test, name: string, addresses: ReadonlySet<string>): Promise<void> {
  return serveNames(t, (asked) => (asked === name ? addresses : undefined))
}

/**
 * A resolver that knows every name, but is silent about some. It ends with the test.
 * @param addresses of names; any other name is 127.0.0.1
 */
export function startSilentNameServer(
  t: Test,
  silent: ReadonlySet<string>,
  addresses: ReadonlyMap<string, string> = new Map(),
): Promise<void> {
  return serveNames(t, (asked) => (silent.has(asked) ? 'silent' : new Set([addresses.get(asked) ?? '127.0.0.1'])))
}

type AddressesOf = (name: string) => ReadonlySet<string> | 'silent' | undefined

async function serveNames(t: Test, addressesOf: AddressesOf): Promise<void> {
  const socket = createSocket('udp4')
  socket.on('message', (query, from) => {
    const { asked, end } = questionOf(query)
    const addresses = addressesOf(asked)
    if (addresses === 'silent') return
    const isKnown = addresses !== undefined
    const found = isKnown && query.readUInt16BE(end - 4) === TYPE_A ? [...addresses] : []
    const header = Buffer.alloc(HEADER_BYTES)
    query.copy(header, 0, 0, 2)
    header.writeUInt16BE(FLAGS + (isKnown ? 0 : NO_SUCH_NAME), 2)
    header.writeUInt16BE(1, 4)
    header.writeUInt16BE(found.length, 6)
    const message = Buffer.concat([header, query.subarray(HEADER_BYTES, end), ...found.map(record)])
    socket.send(message, from.port, from.address)
  })
  socket.bind(PORT, ADDRESS)
  await once(socket, 'listening')
  t.teardown(() => socket.close())
}

/** The name of the question, and the offset of its end. */
function questionOf(query: Buffer): { asked: string; end: number } {
  const labels: string[] = []
  let at = HEADER_BYTES
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('ascii', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { asked: labels.join('.').toLowerCase(), end: at + 5 }
}

function record(address: string): Buffer {
  const bytes = Buffer.alloc(16)
  bytes.writeUInt16BE(SAME_NAME, 0)
  bytes.writeUInt16BE(TYPE_A, 2)
  bytes.writeUInt16BE(CLASS_IN, 4)
  bytes.writeUInt32BE(TTL_SECONDS, 6)
  bytes.writeUInt16BE(4, 10)
  bytes.set(address.split('.').map(Number), 12)
  return bytes
}
