import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { IDENTITY_PATH } from '../support/upstream/scripted-upstream.ts'
import { ACCOUNTS, TRADING } from '../support/user.ts'
import type { Journey } from './acts.ts'
import { CALL_JOURNEYS, LOGINS } from './call-journeys.ts'
import { CALL_FAULTS, type CallFault, type CallName } from './calls.ts'
import { play } from './play.ts'
import { startScene, type Scene } from './scene.ts'
import { mayBeTold } from './told.ts'

/** Every so many journeys suffer the first faults. The seed says where to begin. `npm run test:every-command` has all. */
const STEP = Number(process.env['STEP'] ?? 19)
const SEED = Number(process.env['SEED'] ?? 1)
const WANTED = CALL_FAULTS.slice(0, Number(process.env['FAULTS'] ?? 12))
/** Each has a Redis and two instances, and waits most of the time. */
const SCENES = 3
/** Upstream says who has logged in. */
const ASKING_WHO = {
  OIDC: 'false',
  DISCOVERY: 'false',
  BACKCHANNEL_LOGOUT: 'false',
  OAUTH_SCOPE: 'trade',
  JWKS_URL: '',
  END_SESSION_URL: '',
  IDENTITY_PATH,
  IDENTITY_POINTER: '/data/id',
}
/** Between two rounds of somebody else, while a response is late: all that they send must not be in the logs, which are searched. */
const PAUSE_MS = 1000
const BYSTANDER = 'somebody else'

/** Somebody whose calls suffer nothing logs in, reads with a token that has to be renewed, orders, opens a socket and logs out. */
async function goAbout(scene: Scene): Promise<void> {
  const actor = await scene.user(BYSTANDER, 0.001)
  scene.actors.splice(scene.actors.indexOf(actor), 1)
  const read = await actor.call('GET', ACCOUNTS)
  scene.expect(read.status === 200, `somebody else reads: ${read.text}`)
  const order = await actor.order({ key: randomUUID() })
  scene.expect(order.status === 200, `somebody else orders: ${order.text}`)
  const browser = actor.socket(TRADING)
  browser.socket.once('open', () => browser.socket.send('{"ping":1}'))
  scene.expect((await browser.count(1)).length === 1, 'a socket of somebody else does not open')
  browser.socket.close()
  scene.expect((await actor.logOut()).status === 204, 'somebody else logs out')
}

/** One journey, one call of which suffers. @returns what suffered; undefined where the journey has fewer such calls */
async function suffer(scene: Scene, journey: Journey, at: number, fault: CallFault): Promise<CallName | undefined> {
  const { calls } = scene
  calls.bystander = BYSTANDER
  scene.isTrue = (told) => mayBeTold(`${journey.name}: ${calls.hit} ${fault}`, told)
  await play(scene, journey, async (act) => {
    calls.arm(at, fault)
    const acting = act()
    let judge: Awaited<typeof acting> | undefined
    for (; judge === undefined; judge = await Promise.race([acting, delay(PAUSE_MS, undefined)])) await goAbout(scene)
    calls.heal()
    return judge
  })
  return calls.hit
}

/** What is played of these journeys. */
function runsOf(journeys: readonly Journey[]): { readonly journey: Journey; readonly fault: CallFault }[] {
  const all = WANTED.flatMap((fault) => journeys.map((journey) => ({ journey, fault })))
  return all.filter((_run, number) => number % STEP === SEED % STEP)
}

await test(`Whichever call to a peer fails, what is told is true, the user can go on, and nobody else notices (SEED=${SEED})`, async (t) => {
  let played = 0
  const player = async (runs: ReturnType<typeof runsOf>, settings = {}): Promise<void> => {
    const scene = await startScene(t, { UPSTREAM_HEADERS_SECONDS: '4', ...settings })
    // The server knows the keys of the provider from then on.
    await goAbout(scene)
    for (let run = runs.shift(); run !== undefined; run = runs.shift()) {
      const { journey, fault } = run
      for (let at = 0; ; at++) {
        const hit = await suffer(scene, journey, at, fault)
        t.same(scene.problems, [], `${journey.name}: ${hit ?? 'no call'} (${at}) ${fault}`)
        if (hit === undefined) break
        played++
      }
    }
  }
  const runs = runsOf(CALL_JOURNEYS)
  await Promise.all([...Array.from({ length: SCENES }, () => player(runs)), player(runsOf(LOGINS), ASKING_WHO)])
  t.comment(`${played} calls`)
  t.ok(played > 0)
})
