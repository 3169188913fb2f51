import type { Fault } from '../fault.ts'
import { oneOf, onLinks } from '../whom.ts'

const FIRST = [
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 102 Processing\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n',
] as const

/** A proxy on the way adds what HTTP/1.1 allows. */
export const informationalResponses: Fault = {
  name: 'informational-responses',
  sentence:
    'Before each response of the provider and of upstream there is an informational one, and white space follows its length.',
  apply(fleet, random) {
    const rewrites = (way: 'request' | 'reply', bytes: Buffer): Buffer => {
      const text = way === 'reply' ? bytes.toString('latin1') : ''
      if (!/^HTTP\/1\.1 [2-5]/.test(text)) return bytes
      return Buffer.from(oneOf(FIRST, random) + text.replace(/^(content-length: *\d+)\r$/im, '$1 \t\r'), 'latin1')
    }
    const ends = (['provider', 'upstream'] as const).map((peer) => onLinks(fleet.instances, peer, { rewrites }))
    return {
      note: 'responses come with 1xx and white space',
      touches: [],
      settleMs: 0,
      heal: () => ends.forEach((end) => end()),
    }
  },
}
