import { anyInstance, type Fault } from '../fault.ts'

const SHARE = 0.2
const RESPONSE = Buffer.from('HTTP/1.1')

/** Responses of an instance do not arrive at its pages. */
export const lostAnswers: Fault = {
  name: 'lost-answers',
  sentence:
    'The connection of a page to an instance breaks before or within the response, when the instance has done what was asked for.',
  apply(fleet, random) {
    const { at, name, links } = anyInstance(fleet, random)
    const heal = links.browsers.add({
      cuts(way, bytes) {
        if (way !== 'reply' || !bytes.subarray(0, RESPONSE.length).equals(RESPONSE) || random() > SHARE)
          return undefined
        return random() < 0.5 ? 'before' : 'within'
      },
    })
    return {
      note: `pages lose responses of ${name}`,
      touches: [
        { instances: [at], results: ['no_answer'] },
        { instances: [at], kinds: ['login', 'signup', 'logout', 'socket'] },
      ],
      settleMs: 1000,
      heal,
    }
  },
}
