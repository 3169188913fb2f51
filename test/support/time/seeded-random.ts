import { randomFrom } from '../../../sandbox/upstream/market.ts'

/** A random generator that repeats itself for a seed: that of the variable SEED, else a new one. */
export function seededRandom(seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))) {
  return { seed, random: randomFrom(seed) }
}
