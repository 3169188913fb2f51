import { join } from 'node:path'
import { test } from 'tap'
import { edit, installed, sandboxFor, started, useTheRecipe } from '../support/recipes/recipe.ts'
import { startWorld } from '../support/world.ts'

await test('docs/examples/angular: a user logs in, sees accounts and prices, and logs out', async (t) => {
  const recipe = await installed(t, 'angular')
  await recipe.run('ng', 'build')
  const { server } = await startWorld(t, { settings: { STATIC_DIR: join(recipe.dir, 'dist/page/browser') } })
  await useTheRecipe(t, `${server.url}/`)

  const place = await sandboxFor(t)
  await edit(recipe, 'package.json', { 5173: place.port })
  await edit(recipe, 'proxy.json', { 'localhost:3000': place.server })
  await started(t, recipe, 'dev', place)
  await useTheRecipe(t, `${place.origin}/`)
})
