import { join } from 'node:path'
import type { Test } from 'tap'
import { startWorld } from '../world.ts'
import { developed, installed, useTheRecipe } from './recipe.ts'

/**
 * Uses a recipe that Vite builds, served by the server with its default Content-Security-Policy, and as it is developed.
 * @param check the program that checks its types
 */
export async function useViteRecipe(t: Test, name: string, check: string): Promise<void> {
  const recipe = await installed(t, name)
  await recipe.run(check)
  await recipe.run('vite', 'build')
  const { server } = await startWorld(t, { settings: { STATIC_DIR: join(recipe.dir, 'dist') } })
  const page = await useTheRecipe(t, `${server.url}/`)
  await page.route('**/api/**', (route) => route.abort(), { times: 1 })
  await page.click('text=Log in')
  const message = page.locator('[role=status]')
  await message.filter({ hasText: 'no response' }).waitFor()
  await page.click('text=Log out')
  await page.locator('a', { hasText: 'Log in' }).waitFor()
  t.equal(await message.innerText(), '', 'what failed for a user is not told to the next one')
  await useTheRecipe(t, `${await developed(t, recipe, 'vite.config.ts', '5173')}/`)
}
