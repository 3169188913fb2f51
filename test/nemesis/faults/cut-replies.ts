import { anyInstance, type Fault } from '../fault.ts'

const SHARE = 0.3

/** Responses of upstream are lost after it has executed the calls. */
export const cutReplies: Fault = {
  name: 'cut-replies',
  sentence:
    'The connection of one instance to upstream breaks when upstream has executed a call, before or within the response.',
  apply(fleet, random) {
    const { at, name, links } = anyInstance(fleet, random)
    const heal = links.upstream.add({
      cuts(way, bytes) {
        if (way !== 'reply' || !bytes.subarray(0, 8).equals(Buffer.from('HTTP/1.1')) || random() > SHARE)
          return undefined
        return random() < 0.5 ? 'before' : 'within'
      },
    })
    return { note: `${name} loses responses of upstream`, touches: [{ instances: [at] }], settleMs: 1000, heal }
  },
}
