import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import SwaggerParser from '@apidevtools/swagger-parser'
import { test } from 'tap'
import { fullDocument } from '../support/openapi/document.ts'

const ROOT = new URL('../../', import.meta.url).pathname
/** Spectral is not installed with this project: .spectral.yaml says why. */
const SPECTRAL = '@stoplight/spectral-cli@6.16.3'

/** Runs a program. @returns what it printed, if it failed */
async function failureOf(program: string, ...options: readonly string[]): Promise<string | undefined> {
  // The test runner sets NODE_OPTIONS, which other programs must not inherit.
  const env = [
    '-u',
    'NODE_OPTIONS',
    'REDOCLY_TELEMETRY=off',
    'REDOCLY_SUPPRESS_UPDATE_NOTICE=true',
    'SCARF_ANALYTICS=false',
  ]
  const run = promisify(execFile)('env', [...env, program, ...options], { cwd: ROOT })
  return run.then(
    () => undefined,
    (error: { stdout: string; stderr: string }) => error.stdout + error.stderr,
  )
}

await test('the linters of the field accept /openapi.json, and still find faults', async (t) => {
  const document = fullDocument()
  const dir = t.testdir()
  const good = join(dir, 'good.json')
  const bad = join(dir, 'bad.json')
  const { '/auth/login': login, ...paths } = document.paths
  await writeFile(good, JSON.stringify(document, undefined, 2))
  await writeFile(bad, JSON.stringify({ ...document, paths: { ...paths, '/auth/login/': login } }))

  await t.test('Redocly', async (t) => {
    t.equal(await failureOf('redocly', 'lint', good), undefined)
    t.match(await failureOf('redocly', 'lint', bad), 'no-path-trailing-slash')
  })

  await t.test('swagger-parser', async (t) => {
    await t.resolves(SwaggerParser.validate(structuredClone(document) as never))
    await t.rejects(SwaggerParser.validate({ ...structuredClone(document), info: undefined } as never))
  })

  const skip = process.env['SPECTRAL'] === undefined && 'SPECTRAL=1 downloads and runs it'
  await t.test('Spectral', { skip }, async (t) => {
    const lint = ['--yes', SPECTRAL, 'lint', '--fail-severity=hint']
    t.equal(await failureOf('npx', ...lint, good), undefined)
    t.match(await failureOf('npx', ...lint, bad), 'path-keys-no-trailing-slash')
  })
})
