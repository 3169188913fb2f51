import { CanonicalJson, printed } from './canonical-json.ts'

/** What a member has asked for on its present connection. */
export interface Asked {
  /** `echo_req` of the answers, in canonical form. */
  readonly echo: string
  /** Names the request in both worlds. */
  readonly name: string
}

/** What one connection of a member asked and received, as it is compared. */
export interface Transcript {
  readonly asked: readonly Asked[]
  readonly received: readonly string[]
}

/** What is read of a message of upstream's. */
interface Message {
  readonly msg_type?: string
  readonly error?: { readonly code: string }
  readonly subscription?: { readonly id: string }
  readonly tick?: { readonly symbol: string }
  readonly forget_all?: readonly string[]
}

/** Stands among received messages for a request to forget something, which was sent at that point. */
export const FORGETS = 'the member forgets'

/** The `echo_req` of a text in canonical form: an empty object for what is no JSON object. */
export function echoOf(text: string): string {
  try {
    const echo = CanonicalJson.of(text)
    return echo.startsWith('{') ? echo : '{}'
  } catch {
    return '{}'
  }
}

/** What a connection received, reduced to what must be the same whoever serves it. */
interface Digest {
  /** The messages by request, each in the order in which it came. */
  readonly messages: ReadonlyMap<string, readonly string[]>
  /** The streams that ids belong to, or belonged to last. */
  readonly streams: ReadonlyMap<string, string>
}

/**
 * Reads the messages of a connection. Ids of subscriptions are replaced by what they stand for. Errors are apart, since a
 * request that is sent twice may be refused before it is answered.
 */
export function digest({ asked, received }: Transcript): Digest {
  const names = new Map<string, string>()
  for (const { echo, name } of asked) if (!names.has(echo)) names.set(echo, name)
  const messages = new Map<string, string[]>()
  const ids = new Ids()
  for (const text of received) {
    if (text === FORGETS) {
      ids.forgotten()
      continue
    }
    const [request, content] = reduced(text, names, ids)
    const contents = messages.get(request)
    if (contents === undefined) messages.set(request, [content])
    else contents.push(content)
  }
  return { messages, streams: ids.streams }
}

/** The ids of the subscriptions of a connection. */
class Ids {
  readonly streams = new Map<string, string>()
  /** What the streams are about, which stays the same when a request with other words subscribes again. */
  readonly subjects = new Map<string, string>()
  readonly #running = new Map<string, string>()

  /** Notes a message of a stream. @returns what the id stands for */
  seen(id: string, stream: string): string {
    const [owner, own] = [this.streams.get(id), this.#running.get(stream)]
    const isTaken = owner !== undefined && owner !== stream && this.#running.get(owner) === id
    this.streams.set(id, stream)
    this.#running.set(stream, id)
    if (isTaken) return 'the id of another stream'
    return own === undefined || own === id ? 'the id' : 'another id than before'
  }

  /** Once the member asks to forget streams, and again once that is answered, ids may come again or change. */
  forgotten(): void {
    this.#running.clear()
  }
}

function reduced(text: string, names: ReadonlyMap<string, string>, ids: Ids): readonly [string, string] {
  let members: Map<string, string>
  try {
    members = CanonicalJson.members(text)
  } catch (error) {
    return ['no message', `${String(error)}: ${text}`]
  }
  const echo = members.get('"echo_req"') ?? 'no echo_req'
  const name = names.get(echo) ?? `not asked: ${echo}`
  members.delete('"echo_req"')
  const { msg_type: type, subscription, error, tick, forget_all: forgotten } = JSON.parse(text) as Message
  if (error !== undefined) return [`${name} (error)`, refusal(members, error)]
  if (type === 'forget' || type === 'forget_all') ids.forgotten()
  if (type === 'forget_all') {
    const streams = (forgotten ?? []).map((id) => ids.subjects.get(id) ?? 'an unknown stream')
    members.set('"forget_all"', JSON.stringify(streams.toSorted()))
  }
  if (subscription === undefined) return [name, printed(members)]
  const { id } = subscription
  // A request with an array of symbols has a stream for each.
  const symbol = /"(?:ticks_history|underlying_symbol)":("[^"]*")/.exec(echo)?.[1] ?? tick?.symbol
  ids.subjects.set(id, `${symbol}${echo.includes('"candles"') ? ' candles' : ''}`)
  const stream = echo.includes('"ticks":[') ? `${name} ${tick?.symbol}` : name
  return [stream, printed(members).replaceAll(id, ids.seen(id, stream))]
}

/** How upstream words AlreadySubscribed for streams that it does not know to be equal is not known. */
function refusal(members: Map<string, string>, error: { code: string }): string {
  if (error.code === 'AlreadySubscribed') members.set('"error"', '"AlreadySubscribed"')
  return printed(members)
}

/** The first difference between what two connections received. Undefined if there is none. */
export function difference(one: Transcript, other: Transcript): string | undefined {
  const [ones, others] = [digest(one).messages, digest(other).messages]
  for (const request of new Set([...ones.keys(), ...others.keys()])) {
    const [a, b] = [ones.get(request) ?? [], others.get(request) ?? []]
    const at = Array.from({ length: Math.max(a.length, b.length) }, (_, index) => index).find(
      (index) => a[index] !== b[index],
    )
    if (at === undefined) continue
    return `message ${at + 1} to ${request}:\n  alone  ${a[at] ?? 'nothing'}\n  shared ${b[at] ?? 'nothing'}`
  }
  return undefined
}
