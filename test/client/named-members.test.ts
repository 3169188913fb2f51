import { execFile } from 'node:child_process'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'

const ROOT = new URL('../../', import.meta.url).pathname

/** Lines that are wrong, and what a compiler has to say of each. */
const WRONG: readonly (readonly [line: string, says: string])[] = [
  [`market.request({ ticks: 'R_100', subscibe: 1 })`, 'UnknownMember<"subscibe">'],
  [`market.subscribe({ ticks: 'R_100', granularity: 60 }, () => 0)`, 'UnknownMember<"granularity">'],
  [`market.request({ tikcs: 'R_100' })`, 'UnknownOperation<"tikcs">'],
  [`trading.subscribe({ portfolio: 1 }, () => 0)`, 'UnknownOperation<"portfolio">'],
  [`trading.command({ buy: 1, price: 1, parameters: { ...terms, amuont: 1 } })`, 'UnknownMember<"amuont">'],
  [`useSubscription(client, { ticks: 'R_100', subscibe: 1 })`, 'UnknownMember<"subscibe">'],
  [
    `market.request({ ticks_history: 'R_100', end: 'latest', style: 'candels' })`,
    `'"candels"' is not assignable to type 'HistoryStyle | undefined'. Did you mean '"candles"'?`,
  ],
  [`market.request({ ticks_history: 'R_100' })`, "Property 'end' is missing"],
  [
    `market.subscribe({ ticks: 'R_100' }, ({ tick }) => tick.qoute)`,
    "Property 'qoute' does not exist on type 'Tick'. Did you mean 'quote'?",
  ],
]

const HEAD = `import type { Client, ContractTerms, PublicSocket, TradingSocket } from 'trading-bff-client'
import { useSubscription } from 'trading-bff-client/react'
declare const [market, trading, client, terms]: [PublicSocket, TradingSocket, Client, ContractTerms]`

for (const compiler of ['typescript', 'typescript-5']) {
  await test(`${compiler}: what is wrong in a message, or read from an answer, is named`, async (t) => {
    const dir = t.testdir({ node_modules: {}, 'package.json': '{"type":"module"}' })
    await symlink(join(ROOT, 'client'), join(dir, 'node_modules/trading-bff-client'))
    const files = WRONG.map(([line], number) => [`wrong-${number}.ts`, `${HEAD}\nvoid ${line}\n`] as const)
    for (const [name, text] of files) await writeFile(join(dir, name), text)
    const common = { strict: true, noEmit: true, target: 'es2022', lib: ['es2022', 'dom', 'dom.iterable'], types: [] }
    const compilerOptions = { ...common, module: 'esnext', moduleResolution: 'bundler' }
    await writeFile(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: files.map(([name]) => name) }))
    const bin = join(ROOT, 'node_modules', compiler, 'bin/tsc')
    // The test runner sets NODE_OPTIONS, which the compiler must not inherit.
    const command = ['-u', 'NODE_OPTIONS', process.execPath, bin, '-p', dir, '--pretty', 'false']
    const said = await promisify(execFile)('env', command, { cwd: dir }).then(
      () => '',
      ({ stdout }: { stdout: string }) => stdout,
    )
    const errors = said.split(/^(?=wrong-)/m).filter((error) => error !== '')
    t.equal(errors.length, WRONG.length, said)
    for (const [number, [line, says]] of WRONG.entries()) {
      const error = errors.find((text) => text.startsWith(`wrong-${number}.ts(4,`)) ?? ''
      t.match(error, says, line)
    }
  })
}
