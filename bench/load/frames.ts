import { randomBytes } from 'node:crypto'

/** Text frames with a payload of 290 bytes, the size of a tick. `toUpstream` is masked. */
export interface Frames {
  readonly toBrowser: Buffer
  readonly toUpstream: Buffer
}

const PAYLOAD_BYTES = 290
/** FIN and the text opcode (RFC 6455 §5.2). */
const TEXT = 0x81
/** The payload length is in the next two bytes. */
const LENGTH_FOLLOWS = 126
const MASKED = 0x80

/** Builds both frames. The mask is random; it does not affect the measurement. */
export function frames(): Frames {
  const tick = payload('{"tick":{"ask":1234.567,"bid":1234.561,"quote":1234.564,"symbol":"R_100"},"msg_type":"tick"')
  const order = payload('{"proposal":1,"amount":10,"basis":"stake","contract_type":"CALL","currency":"USD"')
  const mask = randomBytes(4)
  const masked = order.map((byte, index) => byte ^ (mask[index % 4] ?? 0))
  return {
    toBrowser: Buffer.concat([header(0), tick]),
    toUpstream: Buffer.concat([header(MASKED), mask, masked]),
  }
}

function header(maskBit: number): Buffer {
  const bytes = Buffer.from([TEXT, maskBit | LENGTH_FOLLOWS, 0, 0])
  bytes.writeUInt16BE(PAYLOAD_BYTES, 2)
  return bytes
}

function payload(start: string): Buffer {
  return Buffer.from(`${start},"x":"`.padEnd(PAYLOAD_BYTES - 2, 'x') + '"}')
}
