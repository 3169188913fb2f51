import type { History } from './history.ts'

/** The name that a page has given to a purchase on a socket: in its message, and in the answer to it. Undefined in others. */
export function purchaseIn(text: string): string | undefined {
  return text.includes('"buy"') ? /"purchase":"([\w-]+)"/.exec(text)?.[1] : undefined
}

/** The purchases that have reached upstream, in that order, each as often as it has. */
export function purchasesAt({
  delivered,
}: History): { at: number; sentAt: number; instance: number | undefined; id: string }[] {
  return delivered.flatMap(({ text, at, sentAt, instance }) => {
    const id = purchaseIn(text)
    return id === undefined ? [] : [{ at, sentAt, instance, id }]
  })
}
