import { test } from 'tap'
import { GLEWLWYD } from '../support/providers/glewlwyd.ts'
import { checkProduct } from '../support/providers/product-checks.ts'

await test('Glewlwyd', (t) => checkProduct(t, GLEWLWYD))
