import { execFile } from 'node:child_process'
import { cp, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'

const ROOT = new URL('../../', import.meta.url).pathname
const COMPILERS = { 'TypeScript 7': 'typescript/bin/tsc', 'TypeScript 5.9': 'typescript-5/bin/tsc' }
const MODULES = { bundler: 'esnext', nodenext: 'nodenext' }

/** Each has lines that must not compile, and says so. */
const PROBES = ['messages.ts', 'bodies.ts', 'hooks.ts', 'testing.ts']

for (const [moduleResolution, module] of Object.entries(MODULES)) {
  for (const [compiler, bin] of Object.entries(COMPILERS)) {
    await test(`${compiler}, ${moduleResolution}: messages, bodies, hooks and fake servers are typed by operation and path: what is right compiles, and what is wrong does not`, async (t) => {
      const dir = t.testdir({ node_modules: {}, 'package.json': '{"type":"module"}' })
      for (const name of PROBES) await cp(join(ROOT, 'test/client/probe', name), join(dir, name))
      await symlink(join(ROOT, 'client'), join(dir, 'node_modules/trading-bff-client'))
      const common = { strict: true, noEmit: true, target: 'es2022', lib: ['es2022', 'dom', 'dom.iterable'], types: [] }
      await writeFile(
        join(dir, 'tsconfig.json'),
        JSON.stringify({ compilerOptions: { ...common, module, moduleResolution }, files: PROBES }),
      )
      // The test runner sets NODE_OPTIONS, which the compiler must not inherit.
      const command = ['-u', 'NODE_OPTIONS', process.execPath, join(ROOT, 'node_modules', bin), '-p', dir]
      const failure = await promisify(execFile)('env', command, { cwd: dir }).then(
        () => undefined,
        ({ stdout }: { stdout: string }) => stdout,
      )
      t.equal(failure, undefined)
    })
  }
}
