import type { Delivered, History } from './history.ts'

/** The name that a page has given to a purchase on a socket: in its message, and in the answer to it. Undefined in others. */
export function purchaseIn(text: string): string | undefined {
  return text.includes('"buy"') ? /"purchase":"([\w-]+)"/.exec(text)?.[1] : undefined
}

/** A purchase that has reached upstream. */
interface Purchase extends Omit<Delivered, 'text'> {
  readonly id: string
}

/** The purchases that have reached upstream, in that order, each as often as it has. None had left before its page sent it. */
export function purchasesAt({ delivered, sockets }: History): Purchase[] {
  const asked = new Map(sockets.flatMap(({ sent }) => sent.map(({ text, at }) => [purchaseIn(text), at])))
  return delivered.flatMap(({ text, sentAt, ...rest }) => {
    const id = purchaseIn(text)
    return id === undefined ? [] : [{ ...rest, id, sentAt: Math.max(sentAt, asked.get(id) ?? sentAt) }]
  })
}
