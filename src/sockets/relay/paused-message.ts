import { parsedObject } from '../../http/parsed-object.ts'
import { isUnambiguous } from '../json-text.ts'
import { membersOf, operationOf, READS } from '../operations.ts'
import { echoing, refusing } from '../upstream-error.ts'

/** The meaning of a message, as far as it is beyond doubt. */
interface PausedMessage {
  /** `read`: it changes nothing, or stops an automation. `closing`: it closes what was bought. Anything else may be an order. */
  readonly kind: 'read' | 'closing' | 'order'
  /** The text of the message, if it is a JSON object that may be repeated in an answer. */
  readonly text: string | undefined
}

/** A longer message is no read of a page, and would cost time. */
const MAX_BYTES = 16_384
const MAX_DEPTH = 16

/** The operations that close what was bought, with their other members. They pass while orders are paused unless that is, too. */
export const CLOSINGS: Readonly<Record<string, readonly string[]>> = { cancel: [], sell: ['price'] }

const MEMBERS = membersOf(READS)
const CLOSING_MEMBERS = membersOf(CLOSINGS)

const UNREADABLE: PausedMessage = { kind: 'order', text: undefined }

/**
 * Reads a message of a browser while orders are paused. Upstream may have another parser than this server, so a message counts as
 * what it seems to be only where all parsers agree: it is a JSON object, none of its objects has a member twice, and it has an
 * operation of the lists and no member that is not of that operation.
 */
export function readPaused(message: Buffer, isBinary: boolean): PausedMessage {
  if (isBinary || message.length > MAX_BYTES) return UNREADABLE
  const text = message.toString()
  const value = parsedObject(text)
  if (value === undefined) return UNREADABLE
  const depth = depthOf(text)
  if (depth > MAX_DEPTH) return UNREADABLE
  const names = Object.keys(value)
  if (!isUnambiguous(text, value)) return { kind: 'order', text }
  if (isListed(MEMBERS, names)) return { kind: 'read', text }
  return { kind: isListed(CLOSING_MEMBERS, names) ? 'closing' : 'order', text }
}

/** The answer to a message that must not pass: an error in upstream's shape. */
export function ordersPaused(message: Buffer, { text }: PausedMessage, why: string | undefined): Buffer {
  const operation = text === undefined ? 'other' : operationOf(message)
  const end = refusing(operation, 'OrdersPaused', why ?? 'Orders are paused.')
  return Buffer.from((text === undefined ? '{' : echoing(text)) + end)
}

/** Whether one of the names is an operation, and all are members of it. */
function isListed(operations: typeof MEMBERS, names: readonly string[]): boolean {
  return names.some((name) => {
    const members = operations.get(name)
    return members !== undefined && names.every((each) => members.has(each))
  })
}

/** How deep the brackets of a valid JSON text are nested. */
function depthOf(json: string): number {
  let depth = 0
  let deepest = 0
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]]/g)) {
    if (token === '{' || token === '[') deepest = Math.max(deepest, ++depth)
    else if (token === '}' || token === ']') depth--
  }
  return deepest
}
