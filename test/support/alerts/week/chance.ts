import { randomFrom } from '../../../../sandbox/upstream/market.ts'

/** Numbers from 0 to 1 that are the same for the same text. */
export function chanceOf(text: string): () => number {
  let seed = 0
  for (const letter of text) seed = (Math.imul(seed, 31) + letter.charCodeAt(0)) | 0
  return randomFrom(seed >>> 0)
}

/** Above this many, the number varies so little that it may as well not. */
const MANY = 60

/** How many events happen where so many are expected (Poisson's distribution). */
export function happened(expected: number, chance: () => number): number {
  if (expected <= 0) return 0
  if (expected > MANY) return Math.round(expected)
  const limit = Math.exp(-expected)
  let count = 0
  for (let product = chance(); product > limit; product *= chance()) count++
  return count
}
