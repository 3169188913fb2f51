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
  await useTheRecipe(t, `${server.url}/`)
  await useTheRecipe(t, `${await developed(t, recipe, 'vite.config.ts', '5173')}/`)
}
