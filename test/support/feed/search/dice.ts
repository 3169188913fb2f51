import { crc32 } from 'node:zlib'
import { seededRandom } from '../../time/seeded-random.ts'

/** Random numbers that depend on a seed and a name, and not on the order in which names are asked for. */
export class Dice {
  readonly #seed: number
  readonly #counts = new Map<string, number>()

  constructor(seed: number) {
    this.#seed = seed
  }

  /** Those for the next event of this name. */
  of(name: string): () => number {
    const count = (this.#counts.get(name) ?? 0) + 1
    this.#counts.set(name, count)
    return seededRandom(crc32(`${this.#seed} ${name} ${count}`)).random
  }
}
