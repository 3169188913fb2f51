import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { developed, installed, useTheRecipe } from '../support/recipes/recipe.ts'
import { startWorld } from '../support/world.ts'

const TSCONFIG = {
  compilerOptions: {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    target: 'es2022',
    lib: ['es2022', 'dom', 'dom.iterable'],
    module: 'esnext',
    moduleResolution: 'bundler',
    allowImportingTsExtensions: true,
    types: ['vite/client'],
  },
  include: ['src'],
}

await test('docs/examples/vue: a user logs in, sees accounts and prices, and logs out', async (t) => {
  const recipe = await installed(t, 'vue')
  await writeFile(join(recipe.dir, 'tsconfig.json'), JSON.stringify(TSCONFIG))
  await recipe.run('vue-tsc')
  await recipe.run('vite', 'build')
  const { server } = await startWorld(t, { settings: { STATIC_DIR: join(recipe.dir, 'dist') } })
  await useTheRecipe(t, `${server.url}/`)
  await useTheRecipe(t, `${await developed(t, recipe, 'vite.config.ts', '5173')}/`)
})
