import { test } from 'tap'
import { GLEWLWYD } from '../support/glewlwyd.ts'
import { checkProduct } from '../support/product-checks.ts'

await test('Glewlwyd', (t) => checkProduct(t, GLEWLWYD))
