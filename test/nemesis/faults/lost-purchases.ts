import { anyInstance, type Fault } from '../fault.ts'

const SHARE = 0.5
const ANSWER = '"msg_type":"buy"'

/** Answers to purchases on sockets are lost. */
export const lostPurchases: Fault = {
  name: 'lost-purchases',
  sentence: 'The connection of a page to an instance breaks when the answer to a purchase on its socket comes.',
  lastsMs: { least: 3000, most: 10_000 },
  apply(fleet, random) {
    const { at, name, links } = anyInstance(fleet, random)
    const heal = links.browsers.add({
      cuts: (way, bytes) => (way === 'reply' && bytes.includes(ANSWER) && random() < SHARE ? 'before' : undefined),
    })
    return {
      note: `pages lose answers to purchases of ${name}`,
      touches: [{ instances: [at], kinds: ['socket'] }],
      settleMs: 1000,
      heal,
    }
  },
}
