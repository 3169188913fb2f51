const BREAK = '\r\n'

/** A command as a server sends it to Redis, which is a list of words (redis.io/docs/latest/develop/reference/protocol-spec). */
export interface Command {
  readonly words: readonly string[]
  readonly bytes: Buffer
}

/** The first command of these bytes; undefined while it is not complete. */
export function firstCommand(bytes: Buffer): Command | undefined {
  const words: string[] = []
  let [count, at] = header(bytes, 0)
  for (; count > 0; count--) {
    const [length, start] = header(bytes, at)
    at = start + length + BREAK.length
    if (at > bytes.length) return undefined
    words.push(bytes.toString('latin1', start, start + length))
  }
  return at > bytes.length ? undefined : { words, bytes: Buffer.from(bytes.subarray(0, at)) }
}

/** Where the reply, or the push, that begins at `at` ends; Infinity while it is not complete. */
export function replyEnd(bytes: Buffer, at = 0): number {
  const [number, start] = header(bytes, at)
  const type = String.fromCharCode(bytes[at] ?? 0)
  if ('$=!'.includes(type)) {
    const end = number < 0 ? start : start + number + BREAK.length
    return end > bytes.length ? Infinity : end
  }
  if (!'*~>%'.includes(type)) return start
  let end = start
  for (let left = type === '%' ? number * 2 : number; left > 0 && end < Infinity; left--) end = replyEnd(bytes, end)
  return end
}

/** Whether a text of Redis is not the reply to a command. */
export function isPush(bytes: Buffer): boolean {
  return bytes[0] === '>'.charCodeAt(0)
}

/** The number in the line that begins at `at`, and where the next line begins; Infinity if that has not arrived. */
function header(bytes: Buffer, at: number): [number: number, next: number] {
  const end = at < bytes.length ? bytes.indexOf(BREAK, at) : -1
  return end === -1 ? [0, Infinity] : [Number(bytes.toString('latin1', at + 1, end)), end + BREAK.length]
}
