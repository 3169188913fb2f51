import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { REPEATED } from '../../deploy/version.ts'
import program from '../../package.json' with { type: 'json' }
import lock from '../../package-lock.json' with { type: 'json' }
import asyncApi from '../../src/openapi/asyncapi.json' with { type: 'json' }
import { projectFile } from '../support/deployment/files.ts'
import { fullDocument } from '../support/openapi/document.ts'

await test('every file that repeats the version of package.json has it, and so have the documents of the server', (t) => {
  for (const [path, place] of Object.entries(REPEATED))
    t.equal(place.exec(projectFile(path))?.[0], program.version, path)
  t.match(lock, { version: program.version, packages: { '': { version: program.version } } })
  t.match(fullDocument(), { info: { version: program.version } }, '/openapi.json')
  t.match(asyncApi, { info: { version: program.version } }, '/asyncapi.json')
  for (const path of ['CHANGELOG.md', 'client/CHANGELOG.md'])
    t.match(projectFile(path), `\n## ${program.version} (`, `${path} has a section of it`)
  t.end()
})

await test('deploy/version.ts, which `npm version` runs, writes the version of package.json wherever it is repeated', async (t) => {
  const dir = t.testdir({ 'package.json': '{"version":"2.10.0-rc.1"}' })
  for (const path of Object.keys(REPEATED)) {
    mkdirSync(dirname(join(dir, path)), { recursive: true })
    writeFileSync(join(dir, path), projectFile(path))
  }
  t.match(program.scripts.version, /^node deploy\/version\.ts && npm run build:client && git add /)
  await promisify(execFile)(process.execPath, [join(import.meta.dirname, '../../deploy/version.ts')], { cwd: dir })
  for (const [path, place] of Object.entries(REPEATED)) {
    const expected = projectFile(path).split(place)
    t.equal(readFileSync(join(dir, path), 'utf8'), expected.join('2.10.0-rc.1'), path)
  }
})
