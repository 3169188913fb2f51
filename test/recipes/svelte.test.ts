import { test } from 'tap'
import { useViteRecipe } from '../support/recipes/vite-recipe.ts'

await test('docs/examples/svelte: a user logs in, sees accounts and prices, and logs out', (t) =>
  useViteRecipe(t, 'svelte', 'svelte-check'))
