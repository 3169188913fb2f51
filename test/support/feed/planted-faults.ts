import { CanonicalJson, printed } from './canonical-json.ts'
import type { Deliver, Member } from './member.ts'

/** A fault of a server, planted between it and its members. */
export class PlantedFault {
  readonly name: string
  readonly deliver: Deliver
  /** Whether it has happened in the present run. */
  happened = false

  /** @param spoil delivers a message wrongly if the fault applies to it, and says whether it has */
  constructor(name: string, spoil: (members: readonly Member[], member: Member, message: Message) => boolean) {
    this.name = name
    this.deliver = (members, member, text) => {
      const message = messageOf(text)
      if (!this.happened && message !== undefined && spoil(members, member, message)) this.happened = true
      else member.take(text)
    }
  }
}

/** A message that is neither an error nor the last word. */
interface Message {
  readonly text: string
  readonly members: Map<string, string>
  /** The type, quoted. */
  readonly type: string
}

function messageOf(text: string): Message | undefined {
  if (!text.startsWith('{')) return undefined
  const members = CanonicalJson.members(text)
  return { text, members, type: members.get('"msg_type"') ?? '' }
}

/** Finds the first message of a stream after the history that it continues. */
function afterHistory(
  found: (member: Member, text: string) => void,
): () => ConstructorParameters<typeof PlantedFault>[1] {
  return () => {
    const histories = new Map<Member, Set<string>>()
    return (_members, member, { text, members, type }) => {
      const id = members.get('"subscription"')
      if (id === undefined) return false
      const seen = histories.get(member) ?? new Set()
      histories.set(member, seen)
      if (['"history"', '"candles"'].includes(type)) seen.add(id)
      const isNext = ['"tick"', '"ohlc"'].includes(type) && seen.has(id)
      if (isNext) found(member, text)
      return isNext
    }
  }
}

const lost = afterHistory(() => undefined)
const doubled = afterHistory((member, text) => {
  member.take(text)
  member.take(text)
})

/** The faults that a shared feed is most likely to have; each call plants them anew. */
export const FAULTS: readonly (() => PlantedFault)[] = [
  () =>
    new PlantedFault('an answer with a wrong req_id', (_members, member, { members }) => {
      const own = members.get('"req_id"')
      if (own === undefined) return false
      member.take(printed(new Map([...members, ['"req_id"', own === '1' ? '2' : '1']])))
      return true
    }),
  () => new PlantedFault('the first message after a history is lost', lost()),
  () => new PlantedFault('the first message after a history comes twice', doubled()),
  () =>
    new PlantedFault('an answer reaches another member', (all, member, { text }) => {
      const other = all[(all.indexOf(member) + 1) % all.length]
      if (other === undefined || other === member) return false
      other.take(text)
      return true
    }),
  () =>
    new PlantedFault('a number is printed again', (_members, member, { text }) => {
      const again = JSON.stringify(JSON.parse(text))
      if (CanonicalJson.of(again) === CanonicalJson.of(text)) return false
      member.take(again)
      return true
    }),
]
