import { memberTexts } from './json-text.ts'

/** The `msg_type` of upstream's answers, where it is not the name of the operation. */
const MESSAGE_TYPES: ReadonlyMap<string, string> = new Map([
  ['ticks', 'tick'],
  ['ticks_history', 'history'],
  ['other', 'error'],
])

/** The beginning of an answer, which repeats the text of a valid JSON object, its `req_id` and its `passthrough`. */
export function echoing(text: string): string {
  const members = memberTexts(text)
  const own = ['req_id', 'passthrough'].map((key) => (members.has(key) ? `"${key}":${members.get(key)},` : ''))
  return `{"echo_req":${text.trim()},${own.join('')}`
}

/** The end of an answer that refuses a request, in upstream's shape. @param operation `other` where none is known */
export function refusing(operation: string, code: string, message: string): string {
  const type = MESSAGE_TYPES.get(operation) ?? operation
  return `"error":${JSON.stringify({ code, message })},"msg_type":"${type}"}`
}
