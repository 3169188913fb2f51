import type { Test } from 'tap'

/** The messages of the warnings that Node.js gives from now on, until the test ends. It gives each in a later turn. */
export function nodeWarnings(t: Test): readonly string[] {
  const messages: string[] = []
  const note = ({ message }: Error): void => void messages.push(message)
  process.on('warning', note)
  t.teardown(() => process.off('warning', note))
  return messages
}
