import { test, type Test } from 'tap'
import { seededRandom } from '../support/time/seeded-random.ts'
import { until } from '../support/time/until.ts'
import { samplesOf } from '../support/telemetry/metrics.ts'
import { FRAME_FAULTS, HARMLESS } from './frame-faults.ts'
import { FrameProxy } from './frame-proxy.ts'
import { DEEDS, NOTHING, suffer } from './frames.ts'
import { startScene, type Scene } from './scene.ts'
import type { Run, Seat } from './talk.ts'

/** Every so many pieces suffer. The seed says where to begin, and which pairs there are. `npm run test:every-command` has all. */
const STEP = Number(process.env['STEP'] ?? 149)
const SEED = Number(process.env['SEED'] ?? 1)
/** Deeds that come together with faults, at random. */
const PAIRS = Number(process.env['FAULTS'] ?? 0) * 10
const SEATS = 6
/** No conversation has more pieces on a wire. */
const PIECES = 24
const WIRES = ['browser', 'upstream'] as const

/** All that is played: each fault alone, each deed alone, and some pairs of both. */
function plannedRuns(): Run[] {
  const { random } = seededRandom(SEED)
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item
  const [faults, deeds] = [Object.keys(FRAME_FAULTS), Object.keys(DEEDS)]
  const alone = [
    ...faults.map((fault) => ({ fault, deed: NOTHING })),
    ...deeds.map((deed) => ({ fault: Object.keys(HARMLESS)[0] ?? '', deed })),
  ]
  const kinds = alone.flatMap((kind) => WIRES.flatMap((wire) => WIRES.map((closer) => ({ ...kind, wire, closer }))))
  const all = kinds.flatMap((kind) => Array.from({ length: PIECES }, (_, at) => ({ ...kind, at })))
  const pairs = Array.from({ length: PAIRS }, () => ({
    ...{ fault: pick(faults), deed: pick(deeds), wire: pick(WIRES), closer: pick(WIRES) },
    at: Math.floor(random() * PIECES),
  }))
  return [...all.filter((_, number) => number % STEP === SEED % STEP), ...pairs]
}

/** A scene in which the one-time URLs of each seat lead through its proxy. */
async function seated(t: Test): Promise<{ scene: Scene; seats: Seat[] }> {
  const wires = await Promise.all(
    Array.from({ length: SEATS }, async () => ({
      browser: await FrameProxy.start(t, 'server'),
      upstream: await FrameProxy.start(t, 'client'),
    })),
  )
  const scene = await startScene(t, {
    OTP_HOSTS: wires.map(({ upstream }) => `127.0.0.1:${upstream.port}`).join(','),
    MAX_RELAYS_PER_SESSION: '1',
    DRAIN_SECONDS: '4',
    LOG_LEVEL: 'info',
  })
  const { upstream } = scene
  const { onOtp, onUpgrade } = upstream
  const otpUrl = upstream.otpUrl.bind(upstream)
  const seats = await Promise.all(
    wires.map(async (each, at): Promise<Seat> => {
      each.upstream.target = Number(upstream.host.split(':')[1])
      return { scene, account: `SEAT${at}`, wires: each, actor: await scene.user(), meet: () => undefined }
    }),
  )
  const seatOf = new Map<string, Seat>()
  upstream.onOtp = (request, response) => {
    const seat = seats.find(({ account }) => request.url?.includes(`/${account}/`))
    upstream.otpUrl = () => {
      const url = otpUrl()
      if (seat === undefined) return url
      seatOf.set(new URL(url).search, seat)
      return url.replace(upstream.host, `127.0.0.1:${seat.wires.upstream.port}`)
    }
    onOtp(request, response)
  }
  upstream.onUpgrade = (request, socket, head) => {
    const seat = seatOf.get(new URL(request.url ?? '', 'ws://upstream').search)
    upstream.onSocket = (each) =>
      seat === undefined ? each.on('message', (message) => each.send(message, { binary: false })) : seat.meet(each)
    onUpgrade?.(request, socket, head)
  }
  return { scene, seats }
}

await test(`Whatever a piece of a trading socket suffers, each message passes once or its peer is told, and nobody else notices (SEED=${SEED})`, async (t) => {
  const { scene, seats } = await seated(t)
  const somebody = await (await scene.user()).socket('/ws/trading/OTHER').opened()
  const said: string[] = []
  const timer = setInterval(() => {
    said.push(`{"buy":${said.length}}`)
    somebody.socket.send(said.at(-1) ?? '')
  }, 20)
  const runs = plannedRuns()
  let played = 0
  const player = async (seat: Seat): Promise<void> => {
    for (let run = runs.shift(); run !== undefined; run = runs.shift()) {
      const { hit, wrong } = await suffer(seat, run)
      if (hit !== undefined) played++
      if (wrong.length > 0)
        t.fail(`${run.deed}; ${run.wire}: ${hit} (${run.at}) ${run.fault}; closed by ${run.closer}`, { wrong })
    }
  }
  await Promise.all(seats.map(player)).finally(() => clearInterval(timer))
  await until(() => somebody.received.length === said.length, 'somebody else has all answers')
  t.same(somebody.texts, said)
  somebody.socket.close()
  const gauge = async (): Promise<number[]> => [...(await samplesOf(scene.servers[0].opsUrl, 'bff_relays')).values()]
  await until(async () => (await gauge()).every((count) => count === 0), 'no socket is left')
  t.same(scene.problems, [])
  t.comment(`${played} pieces`)
  t.ok(played > 0)
})
