import { test } from 'tap'
import { startScene } from './scene.ts'
import { FAULTS, sufferAll } from './suffer.ts'

/** `npm run test:every-command` has all. */
const { STEP = '8', SEED = '1', FAULTS: most = '2' } = process.env

await test(`Whichever command of a journey fails, what is told is true, and the user can go on (SEED=${SEED})`, async (t) => {
  const troubles = FAULTS.slice(0, Number(most)).map((fault) => ({ fault }))
  const sample = { pairs: 1, step: Number(STEP), seed: Number(SEED), scenes: 4 }
  const played = await sufferAll(t, () => startScene(t), troubles, sample)
  t.comment(`${played} commands`)
  t.ok(played > 0)
})
