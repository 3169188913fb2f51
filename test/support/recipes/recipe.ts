import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import type { Test } from 'tap'
import { freePort } from '../../../sandbox/listening.ts'
import { sendForm, testChromium } from '../browser/chromium.ts'
import { packed, run } from '../client/packed.ts'
import { runCommand, type RunningCommand } from '../sandbox/command.ts'
import { runSandbox } from '../sandbox/page-command.ts'
import { untilSlow } from '../time/until.ts'

const EXAMPLES = fileURLToPath(new URL('../../../docs/examples', import.meta.url))
/** The Node.js of the tests first, and no program of the repository: a recipe has its own. */
const PATH = [dirname(process.execPath), process.env['PATH']?.split(':').filter((dir) => !dir.includes('node_modules'))]
  .flat()
  .join(':')
/** Frameworks report nothing to their makers. */
const SILENT = { DO_NOT_TRACK: '1', NEXT_TELEMETRY_DISABLED: '1', NG_CLI_ANALYTICS: 'false' }
const ENVIRONMENT = { PATH, ...SILENT }
const ASSIGNED = Object.entries(ENVIRONMENT).map(([name, value]) => `${name}=${value}`)

/** A copy of a recipe of docs/examples with its packages, outside of the repository, so that no other module is found. */
export interface Recipe {
  readonly dir: string
  /** Runs a program of the recipe. Fails with what it printed. */
  readonly run: (program: string, ...options: readonly string[]) => Promise<unknown>
}

/** Installs a recipe together with the packed browser package, as its readers do. It ends with the test. */
export async function installed(t: Test, name: string): Promise<Recipe> {
  const dir = await mkdtemp(join(tmpdir(), `recipe-${name}-`))
  t.teardown(() => rm(dir, { recursive: true, maxRetries: 5 }))
  await cp(join(EXAMPLES, name), dir, {
    recursive: true,
    filter: (path) => !/\/(?:node_modules|dist|\.\w+)$/.test(path),
  })
  const npm = (...options: readonly string[]) => run(dir, 'env', ...ASSIGNED, 'npm', ...options)
  await npm('ci', '--ignore-scripts', '--no-audit', '--no-fund')
  await npm('install', '--no-save', '--offline', '--no-audit', '--no-fund', (await packed()).tarball)
  return {
    dir,
    run: (program, ...options) =>
      run(dir, 'env', ...ASSIGNED, join('node_modules/.bin', program), ...options).catch(
        (error: Error & { stdout: string }) => {
          throw new Error(`${error.message}\n${error.stdout}`)
        },
      ),
  }
}

/** Replaces texts of a file of the recipe, each of which it must have. */
export async function edit({ dir }: Recipe, file: string, texts: Readonly<Record<string, string>>): Promise<void> {
  let text = await readFile(join(dir, file), 'utf8')
  for (const [old, replacement] of Object.entries(texts)) {
    if (!text.includes(old)) throw new Error(`${file} has no ${old}`)
    text = text.replaceAll(old, replacement)
  }
  await writeFile(join(dir, file), text)
}

/** The page of a recipe, and the server and sandbox that run for it. */
export interface Place {
  readonly port: string
  /** The origin of the page. */
  readonly origin: string
  /** The host and port of the server. */
  readonly server: string
}

/** Runs the sandbox for a page at a free port. */
export async function sandboxFor(t: Test): Promise<Place> {
  const port = String(await freePort())
  const origin = `http://localhost:${port}`
  const { ports } = await runSandbox(t, ['--page', origin])
  return { port, origin, server: `localhost:${ports['PORT']}` }
}

/** Starts a script of the recipe, and waits until it responds: Vite listens for a moment before that, to see that the port is free. */
export async function started(
  t: Test,
  { dir }: Recipe,
  script: string,
  { port, env }: { readonly port: string; readonly env?: Readonly<Record<string, string>> },
): Promise<RunningCommand> {
  const running = runCommand(t, ['npm', 'run', script], {
    cwd: dir,
    env: { ...ENVIRONMENT, HOME: process.env['HOME'], ...env },
  })
  const response = (): Promise<Response | undefined> => fetch(`http://127.0.0.1:${port}`).catch(() => undefined)
  await untilSlow(async () => (await response())?.ok === true, `npm run ${script} responds`)
  return running
}

/**
 * Runs the sandbox for the page of a recipe, and then `npm run dev` of the recipe.
 * @param config the file with the ports of the page and of the server
 * @param port the port that the page has there
 * @returns the origin of the page
 */
export async function developed(t: Test, recipe: Recipe, config: string, port: string): Promise<string> {
  const place = await sandboxFor(t)
  await edit(recipe, config, { [port]: place.port, 'localhost:3000': place.server })
  await started(t, recipe, 'dev', place)
  return place.origin
}

/** Opens the page of a recipe, sees a price, logs in, sees an account, and logs out. */
export async function useTheRecipe(t: Test, url: string): Promise<Page> {
  const page = await (await testChromium(t)).newPage()
  const failures: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.location().url.endsWith('/favicon.ico')) failures.push(message.text())
  })
  page.on('pageerror', (error) => failures.push(error.message))
  await page.goto(url)
  const login = page.locator('a', { hasText: 'Log in' })
  await login.waitFor()
  await page.locator('output', { hasText: /^\d+\.\d+$/ }).waitFor()
  t.equal(await page.locator('li').count(), 0, 'a visitor sees no account')
  await login.click()
  await sendForm(page)
  await page.locator('li', { hasText: /^DOT\d+: [\d.]+ USD$/ }).waitFor()
  t.equal(page.url(), url)
  await page.locator('output', { hasText: /^\d+\.\d+$/ }).waitFor()
  await page.click('text=Log out')
  await login.waitFor()
  t.equal(await page.locator('li').count(), 0, 'nothing of the user is left')
  t.same(failures, [])
  return page
}
