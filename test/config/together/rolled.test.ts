import { test } from 'tap'
import { DIMENSIONS, type Options } from './dimensions.ts'
import { roll } from './roll.ts'
import { rowWorld } from './row-world.ts'

/** Every so many rolls are played, from one that SEED chooses. `npm run test:every-command` has all, and SETTING=… those of a setting. */
const { EVERY_ROLL = '27', SEED = '1', SETTING = '' } = process.env

/** What an operator does not roll, or only while nobody is logged in, or together with a peer. */
const NOT_ROLLED = new Set(['store', 'secrets', 'refresh tokens', 'cookies', 'client', 'one-time URLs'])

const base: Options = Object.assign(
  { redis: 'one' },
  ...Object.values(DIMENSIONS)
    .slice(1)
    .map(([first]) => first),
)
const KNOWN = DIMENSIONS['identity']?.[1] ?? {}

/** Each two options of a setting, in both orders. */
function rolls(): { readonly name: string; readonly from: Options; readonly to: Options }[] {
  const rolled = Object.entries(DIMENSIONS).filter(([name]) => !NOT_ROLLED.has(name))
  return rolled.flatMap(([name, options]) => {
    const own = name === 'identity' ? base : { ...base, ...KNOWN }
    const all = options.map((option) => ({ ...own, ...option }))
    return all.flatMap((from) =>
      // Sessions and logins from before OpenID Connect end.
      all.filter((to) => from !== to && from['OIDC'] === to['OIDC']).map((to) => ({ name, from, to })),
    )
  })
}

await test('a user notices nothing of a setting that is being rolled out', async (t) => {
  const every = Number(EVERY_ROLL)
  const wanted = rolls().filter(({ name }) => name.includes(SETTING))
  const all = wanted.filter((_roll, at) => at % every === Number(SEED) % every)
  t.comment(`${all.length} of ${wanted.length} rolls`)
  for (const { name, from, to } of all) {
    await t.test(name, async (each) => {
      const world = await rowWorld(each, from, to)
      const problems: string[] = []
      const [one, other] = world.servers
      if (one === undefined || other === undefined) throw new Error('there are two')
      await roll(world, [one, other], (holds, what) => void (holds || problems.push(what))).catch((error: Error) => {
        problems.push(error.stack ?? error.message)
      })
      const differ = Object.keys({ ...from, ...to }).filter((setting) => from[setting] !== to[setting])
      each.strictSame(problems, [], differ.map((setting) => `${setting} ${from[setting]} → ${to[setting]}`).join(', '))
    })
  }
})
