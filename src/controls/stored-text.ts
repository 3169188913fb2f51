import { randomBytes } from 'node:crypto'
import { markOf } from '../store/marked-reading.ts'

/** As many as a mark of version 0.3 has. */
const ID_CHARACTERS = 8

/**
 * The mark of a stored document is new each time. To those who cannot open it, it tells whether they know the document, and states
 * its version.
 * @param id what the marks of all texts of this document begin with
 */
export function newMark(id: string, version: number): string {
  return `${id}${randomId()}.${version}`
}

/** What the marks of all texts of a document begin with. */
export function idOf(text: string): string {
  return markOf(text).slice(0, ID_CHARACTERS)
}

export function randomId(): string {
  return randomBytes((ID_CHARACTERS * 3) / 4).toString('base64url')
}

/** The version that the mark states; -1 where version 0.3 wrote it. */
export function statedVersion(text = ''): number {
  return Number(/^[\w-]+\.(\d{1,15})$/.exec(markOf(text))?.[1] ?? -1)
}

export function sealedPart(text: string): string {
  return text.slice(markOf(text).length + 1)
}
