import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'
import { frame } from '../support/sockets/raw-frames.ts'
import { isMasked, payloadOf, type Suffer, type Way } from './frame-proxy.ts'

const LATE_MS = 50
/** Close codes that a peer may send (1005: none), and some that it may not (RFC 6455 §7.4). */
export const CODES = [1000, 1001, 1003, 1005, 1008, 1011, 1012, 1013, 3000, 4000, 4400, 4401, 4429, 4499, 4500, 4999]
const NO_CODES = [0, 999, 1004, 1006, 1015, 2999, 5000]
const [TEXT, CLOSE, PING, PONG] = [1, 8, 9, 10]

function end(how: 'destroySoon' | 'resetAndDestroy', ...ways: Way[]): void {
  for (const way of ways) {
    way.state = 'mute'
    way.from[how]()
  }
}

/** The peer says something more in the same segment, and nothing after that. */
const more =
  (write: (masked: boolean) => Buffer): Suffer =>
  (piece, way) => {
    way.to.write(piece)
    way.to.write(write(way.who === 'client'))
    way.state = 'mute'
  }

const closing = (code: number): Buffer =>
  code === 1005 ? Buffer.alloc(0) : Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from('why')])

/** What the peers of a connection may do. */
const MISDEEDS: Readonly<Record<string, (masked: boolean) => Buffer>> = {
  'a reserved bit': (masked) => frame({ opcode: TEXT, payload: 'x', rsv: 0x40, masked }),
  'an unknown opcode': (masked) => frame({ opcode: 3, masked }),
  'a wrong mask': (masked) => frame({ opcode: TEXT, payload: 'x', masked: !masked }),
  'a long ping': (masked) => frame({ opcode: PING, payload: 'x'.repeat(126), masked }),
  'no UTF-8': (masked) => frame({ opcode: TEXT, payload: Buffer.from([0xff]), masked }),
  'a continuation': (masked) => frame({ opcode: 0, payload: 'x', masked }),
  'too much': (masked) => frame({ opcode: 2, announced: 2 ** 33, masked }),
}

/** After these, all goes on as if nothing had happened. */
export const HARMLESS: Readonly<Record<string, Suffer>> = {
  passes: (piece, { to }) => to.write(piece),
  'comes late': async (piece, { to }) => {
    await delay(LATE_MS)
    to.write(piece)
  },
  'comes in pieces': async (piece, { to }) => {
    const size = Math.ceil(piece.length / 8)
    for (let at = 0; at < piece.length; at += size) {
      to.write(piece.subarray(at, at + size))
      await nextTurn()
    }
  },
  'comes in fragments': (piece, { to }) => {
    if (piece[0] !== (0x80 | TEXT)) return void to.write(piece)
    const [masked, payload] = [isMasked(piece), payloadOf(piece)]
    const half = Math.ceil(payload.length / 2)
    to.write(frame({ opcode: TEXT, payload: payload.subarray(0, half), fin: false, masked }))
    to.write(frame({ opcode: PING, payload: 'in between', masked }))
    to.write(frame({ opcode: 0, fin: false, masked }))
    to.write(frame({ opcode: 0, payload: payload.subarray(half), masked }))
  },
  'comes among pings': (piece, { to, who }) => {
    const masked = who === 'client'
    const isHead = (piece[0] ?? 0) < 0x80
    if (!isHead) to.write(frame({ opcode: PING, payload: 'before', masked }))
    to.write(piece)
    if (piece[0] !== (0x80 | CLOSE)) to.write(frame({ opcode: PONG, payload: 'after', masked }))
  },
}

/** What may happen to a piece. */
export const FRAME_FAULTS: Readonly<Record<string, Suffer>> = {
  ...HARMLESS,
  'is lost': (_piece, ...ways) => end('destroySoon', ...ways),
  'breaks off': (piece, way, back) => {
    way.to.write(piece.subarray(0, Math.ceil(piece.length / 2)))
    end('destroySoon', way, back)
  },
  'is the last': (piece, way, back) => {
    way.to.write(piece)
    end('destroySoon', way, back)
  },
  'meets a reset': (_piece, ...ways) => end('resetAndDestroy', ...ways),
  'comes before a reset': async (piece, way, back) => {
    way.to.write(piece)
    await delay(LATE_MS)
    end('resetAndDestroy', way, back)
  },
  'ends its half': (piece, way) => {
    way.to.end(piece)
    way.state = 'dead'
  },
  'is never sent on': (_piece, way) => void (way.state = 'dead'),
  ...Object.fromEntries([
    ...[...CODES, ...NO_CODES].map((code) => [
      `comes with close ${code}`,
      more((masked) => frame({ opcode: CLOSE, payload: closing(code), masked })),
    ]),
    ...Object.entries(MISDEEDS).map(([name, write]) => [`comes with ${name}`, more(write)]),
  ]),
}
