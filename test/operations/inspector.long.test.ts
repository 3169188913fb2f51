import { readFileSync } from 'node:fs'
import { test } from 'tap'
import program from '../../package.json' with { type: 'json' }
import { status, twoWorkers, workerPids } from '../support/server/two-workers.ts'

const dockerfile = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8')
const command = JSON.parse(/^CMD (\[.*\])$/m.exec(dockerfile)?.[1] ?? '[]') as string[]

/** The Node.js options in a command that starts the server. */
function nodeOptions(words: readonly string[]): string[] {
  const from = words.indexOf('node') + 1
  return words.slice(from, words.indexOf('src/main.ts'))
}

for (const [starter, words] of [
  ['the image', command],
  ['npm start', program.scripts.start.split(' ')],
] as const) {
  await test(`SIGUSR1 opens no inspector in the supervisor and its workers, as ${starter} starts them`, async (t) => {
    const options = nodeOptions(words)
    t.ok(options.length > 0)
    const server = await twoWorkers(t, {}, { nodeOptions: options })
    for (const pid of [server.child.pid ?? 0, ...workerPids(server)]) process.kill(pid, 'SIGUSR1')
    for (let times = 0; times < 20; times++) t.equal(await status(server.port, '/auth/session'), 200)
    t.equal(server.output().stderr, '', 'Node.js would print there that a debugger may attach')
    // Node.js keeps the signal until a process ends, and may then open one for its last milliseconds.
    server.child.kill('SIGTERM')
    t.equal(await server.exited, 0)
  })
}
